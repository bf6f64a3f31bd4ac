/**
 * Collects values and hands them over together, once per frame. Frames do not come in a hidden tab, so there a timer takes their place.
 */
export function batched<T>(flush: (values: T[]) => void): { push: (value: T) => void; cancel: () => void } {
  let waiting: T[] = [];
  let cancelScheduled: (() => void) | undefined;
  const run = () => {
    cancelScheduled = undefined;
    const values = waiting;
    waiting = [];
    if (values.length > 0) flush(values);
  };
  const schedule = () => {
    if (document.hidden) {
      const timer = setTimeout(run, 100);
      return () => clearTimeout(timer);
    }
    // A tab that is hidden before the frame comes would wait until it is shown again.
    const timer = setTimeout(() => { cancelAnimationFrame(frame); run(); }, 250);
    const frame = requestAnimationFrame(() => { clearTimeout(timer); run(); });
    return () => { cancelAnimationFrame(frame); clearTimeout(timer); };
  };
  return {
    push(value) {
      waiting.push(value);
      cancelScheduled ??= schedule();
    },
    cancel() {
      cancelScheduled?.();
      cancelScheduled = undefined;
      waiting = [];
    },
  };
}
