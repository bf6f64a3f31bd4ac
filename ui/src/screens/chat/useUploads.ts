import { useEffect, useRef, useState, type DragEvent } from 'react';
import { sentence } from '@/api/problem';
import type { Artifact } from '@/api/types';
import { newId } from '@/lib/ids';
import { upload } from '@/thread/actions';

export interface Upload { id: string; file: File; status: 'uploading' | 'done' | 'failed'; progress: number; artifact?: Artifact; problem?: string }

export interface Uploads {
  items: Upload[];
  isOver: boolean;
  dropTarget: { onDragOver: (event: DragEvent) => void; onDragLeave: () => void; onDrop: (event: DragEvent) => void };
  add: (files: File[]) => void;
  remove: (id: string) => void;
  retry: (id: string) => void;
  clear: () => void;
}

/** Files on their way into the thread. They are stored before the message that names them is sent. */
export function useUploads(threadId: string): Uploads {
  const [items, setItems] = useState<Upload[]>([]);
  const [isOver, setIsOver] = useState(false);
  const running = useRef(new Map<string, AbortController>());
  useEffect(() => {
    const calls = running.current;
    return () => calls.forEach((call) => call.abort());
  }, []);

  const change = (id: string, next: Partial<Upload>) => setItems((all) => all.map((one) => (one.id === id ? { ...one, ...next } : one)));
  const begin = ({ id, file }: Pick<Upload, 'id' | 'file'>) => {
    const call = new AbortController();
    running.current.set(id, call);
    upload(threadId, file, (progress) => change(id, { progress }), call.signal).then(
      (artifact) => change(id, { status: 'done', artifact }),
      (error: unknown) => change(id, { status: 'failed', problem: sentence(error) }),
    );
  };
  const add = (files: File[]) => {
    const added = files.map((file): Upload => ({ id: newId(), file, status: 'uploading', progress: 0 }));
    setItems((all) => [...all, ...added]);
    added.forEach(begin);
  };
  return {
    items, isOver, add,
    remove(id) {
      running.current.get(id)?.abort();
      setItems((all) => all.filter((one) => one.id !== id));
    },
    retry(id) {
      const failed = items.find((one) => one.id === id);
      if (!failed) return;
      setItems((all) => all.map((one) => (one.id === id ? { id, file: one.file, status: 'uploading', progress: 0 } : one)));
      begin(failed);
    },
    clear: () => setItems([]),
    dropTarget: {
      onDragOver(event) {
        if (!event.dataTransfer.types.includes('Files')) return;
        event.preventDefault();
        setIsOver(true);
      },
      onDragLeave: () => setIsOver(false),
      onDrop(event) {
        event.preventDefault();
        setIsOver(false);
        add([...event.dataTransfer.files]);
      },
    },
  };
}
