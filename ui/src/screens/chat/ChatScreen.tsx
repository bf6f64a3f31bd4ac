export function ChatScreen({ threadId }: { threadId?: string }) {
  return <p>{threadId}</p>;
}
