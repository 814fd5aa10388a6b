// Long lists of jobs: only the rows in sight are in the page.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

const ROW = 30;
const MORE = 6;

export function List<Row extends { id: number }>(props: {
  label: string;
  heads: string[];
  rows: Row[];
  /** Called for the rows in sight only. */
  cells: (row: Row) => ComponentChildren[];
  selected: number | null;
  select: (id: number | null) => void;
}) {
  const { label, heads, rows, cells, selected, select } = props;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(300);
  useEffect(() => {
    const watched = new ResizeObserver(() => setHeight(box.current!.clientHeight));
    watched.observe(box.current!);
    return () => watched.disconnect();
  }, []);
  const from = Math.max(0, Math.min(Math.floor(top / ROW) - MORE, rows.length));
  const to = Math.min(rows.length, Math.ceil((top + height) / ROW) + MORE);
  const place = selected === null ? -1 : rows.findIndex((row) => row.id === selected);

  const go = (to: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    if (!rows[next]) return;
    select(rows[next].id);
    const [above, below] = [next * ROW, (next + 1) * ROW];
    if (above < box.current!.scrollTop) box.current!.scrollTop = above;
    else if (below > box.current!.scrollTop + height - ROW) box.current!.scrollTop = below - height + ROW;
  };
  const pressed = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(height / ROW) - 1);
    const steps: Record<string, number> = {
      ArrowDown: place + 1,
      ArrowUp: place < 0 ? rows.length : place - 1,
      PageDown: place + page,
      PageUp: place - page,
      Home: 0,
      End: rows.length - 1,
    };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    go(step);
  };
  return (
    <div class={`list columns-${heads.length}`}>
      <div class="heads" aria-hidden="true">
        {heads.map((head) => (
          <span key={head}>{head}</span>
        ))}
      </div>
      <div
        ref={box}
        class="rows"
        role="listbox"
        tabIndex={0}
        aria-label={label}
        aria-activedescendant={place >= from && place < to ? `${label}-${selected}` : undefined}
        onScroll={() => setTop(box.current!.scrollTop)}
        onKeyDown={pressed}
      >
        <div style={{ height: `${rows.length * ROW}px` }}>
          {rows.slice(from, to).map((row, index) => (
            <div
              key={row.id}
              id={`${label}-${row.id}`}
              class="row"
              role="option"
              aria-selected={row.id === selected}
              aria-setsize={rows.length}
              aria-posinset={from + index + 1}
              style={{ top: `${(from + index) * ROW}px` }}
              onClick={() => select(row.id === selected ? null : row.id)}
            >
              {cells(row).map((cell, column) => (
                <span key={column}>{cell}</span>
              ))}
            </div>
          ))}
        </div>
        {rows.length === 0 && <p class="empty">None.</p>}
      </div>
    </div>
  );
}
