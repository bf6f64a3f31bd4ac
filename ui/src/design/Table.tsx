import { ArrowDown, ArrowUp } from 'lucide-react';
import { Fragment, type ReactNode } from 'react';
import { cx } from './cx';
import styles from './Table.module.css';

export interface Column<Row> {
  key: string;
  title: string;
  /** The tooltip of the header. */
  hint?: string;
  /** Right-aligned with tabular digits. */
  numeric?: boolean;
  /** Left out on narrow screens. */
  wide?: boolean;
  /** The header is a button; needs `onSort`. */
  sortable?: boolean;
  cell: (row: Row) => ReactNode;
}

export interface Sort { key: string; descending: boolean }

interface TableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string;
  footer?: ReactNode;
  /** How the rows are sorted; sorting them is the caller's. */
  sort?: Sort | undefined;
  onSort?: (key: string) => void;
  /** What is shown across all columns below a row that is open. */
  expanded?: (row: Row) => ReactNode;
}

/** Rows with a sticky header. Put a link into the first cell where a row leads somewhere. */
export function Table<Row>({ label, columns, rows, rowKey, footer, sort, onSort, expanded }: TableProps<Row>) {
  return (
    // A scrolling region has to be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className={styles.scroll} role="region" aria-label={label} tabIndex={0}>
      <table className={styles.table}>
        <thead>
          <tr>{columns.map((column) => <HeaderCell key={column.key} column={column} sort={sort} onSort={onSort} />)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const more = expanded?.(row);
            return (
              <Fragment key={rowKey(row)}>
                <tr className={cx(more != null && styles.open)}>{columns.map((column) => <td key={column.key} className={classOf(column)}>{column.cell(row)}</td>)}</tr>
                {more != null && <tr className={styles.more}><td colSpan={columns.length}>{more}</td></tr>}
              </Fragment>
            );
          })}
        </tbody>
      </table>
      {footer}
    </div>
  );
}

function HeaderCell<Row>({ column, sort, onSort }: { column: Column<Row>; sort: Sort | undefined; onSort: ((key: string) => void) | undefined }) {
  const sorted = sort?.key === column.key ? (sort.descending ? 'descending' : 'ascending') : undefined;
  if (!column.sortable || !onSort) return <th scope="col" className={classOf(column)} title={column.hint}>{column.title}</th>;
  const Icon = sorted === 'ascending' ? ArrowUp : ArrowDown;
  return (
    <th scope="col" className={classOf(column)} aria-sort={sorted} title={column.hint}>
      <button type="button" className={styles.sort} onClick={() => onSort(column.key)}>{column.title}{sorted && <Icon size={12} aria-hidden />}</button>
    </th>
  );
}

function classOf<Row>({ numeric, wide }: Column<Row>): string {
  return cx(numeric && styles.numeric, wide && styles.wide);
}
