import { Check, Copy } from 'lucide-react';
import { useEffect, useState } from 'react';
import { IconButton } from './Button';

/** Copies a text and says so for two seconds. */
export function CopyButton({ text, label = 'Copy', size = 'small' }: { text: string | (() => string); label?: string; size?: 'small' | 'medium' }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === 'string' ? text : text());
    setCopied(true);
  };
  return <IconButton icon={copied ? Check : Copy} label={copied ? 'Copied' : label} size={size} onClick={() => void copy()} />;
}
