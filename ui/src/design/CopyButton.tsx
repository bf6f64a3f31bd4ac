import { Check, Copy, type LucideIcon } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Button, IconButton } from './Button';

interface CopyProps { text: string | (() => string); label?: string }

/** Copies a text. Says so for two seconds, or that the browser does not allow it. */
export function CopyButton({ text, label = 'Copy', size = 'small' }: CopyProps & { size?: 'small' | 'medium' }) {
  const { copy, isCopied, shown } = useCopy(text, label);
  return <IconButton icon={isCopied ? Check : Copy} label={shown} size={size} onClick={copy} />;
}

/** The same with the label beside the icon. */
export function CopyTextButton({ text, label = 'Copy', icon }: CopyProps & { icon: LucideIcon }) {
  const { copy, isCopied, shown } = useCopy(text, label);
  return <Button icon={isCopied ? Check : icon} onClick={copy} aria-live="polite">{shown}</Button>;
}

function useCopy(text: CopyProps['text'], label: string): { copy: () => void; isCopied: boolean; shown: string } {
  const [result, setResult] = useState<'copied' | 'refused'>();
  useEffect(() => {
    if (!result) return;
    const timer = setTimeout(() => setResult(undefined), 2000);
    return () => clearTimeout(timer);
  }, [result]);
  const copy = async () => {
    try {
      // There is no clipboard on plain http from another machine.
      await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
      setResult('copied');
    } catch {
      setResult('refused');
    }
  };
  return { copy: () => void copy(), isCopied: result === 'copied', shown: result === 'copied' ? 'Copied' : result === 'refused' ? 'Cannot copy' : label };
}
