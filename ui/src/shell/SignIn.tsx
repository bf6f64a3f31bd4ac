export function SignIn() {
  return <main>Sign in</main>;
}
