import { Card, Skeleton } from '@/design';
import styles from './Usage.module.css';

/** Holds the places of tiles, chart and breakdowns. */
export function Loading() {
  return (
    <>
      <div className={styles.tiles}>{[1, 2, 3, 4, 5].map((at) => <div key={at} className={styles.tile}><Skeleton rows={2} height={18} /></div>)}</div>
      <Card className={styles.chart}><Skeleton rows={1} height={208} /></Card>
      <div className={styles.breakdowns}>{[1, 2, 3].map((at) => <Card key={at}><Skeleton rows={5} /></Card>)}</div>
    </>
  );
}
