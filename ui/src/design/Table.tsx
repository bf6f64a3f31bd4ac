import type { ReactNode } from 'react';
import { cx } from './cx';
import styles from './Table.module.css';

export interface Column<Row> {
  key: string;
  title: string;
  /** Right-aligned with tabular digits. */
  numeric?: boolean;
  /** Left out on narrow screens. */
  wide?: boolean;
  cell: (row: Row) => ReactNode;
}

interface TableProps<Row> { label: string; columns: Column<Row>[]; rows: Row[]; rowKey: (row: Row) => string; footer?: ReactNode }

/** Rows with a sticky header. Put a link into the first cell where a row leads somewhere. */
export function Table<Row>({ label, columns, rows, rowKey, footer }: TableProps<Row>) {
  return (
    // A scrolling region has to be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles.scroll} role="region" aria-label={label} tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>{columns.map((column) => <th key={column.key} scope="col" className={classOf(column)}>{column.title}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>{columns.map((column) => <td key={column.key} className={classOf(column)}>{column.cell(row)}</td>)}</tr>
          ))}
        </tbody>
      </table>
      {footer}
    </div>
  );
}

function classOf<Row>({ numeric, wide }: Column<Row>): string {
  return cx(numeric && styles.numeric, wide && styles.wide);
}
