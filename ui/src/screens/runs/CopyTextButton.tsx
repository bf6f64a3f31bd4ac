import { Check, type LucideIcon } from 'lucide-react';
import { useEffect, useState } from 'react';
import { Button } from '@/design';

/** Copies a text. Says so for two seconds, or that the browser does not allow it. */
export function CopyTextButton({ text, label, icon }: { text: () => string; label: string; icon: LucideIcon }) {
  const [result, setResult] = useState<'copied' | 'refused'>();
  useEffect(() => {
    if (!result) return;
    const timer = setTimeout(() => setResult(undefined), 2000);
    return () => clearTimeout(timer);
  }, [result]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setResult('copied');
    } catch {
      setResult('refused');
    }
  };
  const shown = result === 'copied' ? 'Copied' : result === 'refused' ? 'Cannot copy' : label;
  return <Button icon={result === 'copied' ? Check : icon} onClick={() => void copy()} aria-live="polite">{shown}</Button>;
}
