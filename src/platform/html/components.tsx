import type { Child } from 'hono/jsx'

/** The meaning of a text. Colour is never the only sign of it. */
export type Tone = 'good' | 'bad' | 'warn' | 'soft'

export function Card(props: {
  title: string
  note?: Child
  id?: string | undefined
  children?: Child
}) {
  const { title, note, id, children } = props
  return (
    <section id={id}>
      <h2>
        {title}
        {note && <small> {note}</small>}
      </h2>
      {children}
    </section>
  )
}

/** A message about what was done or refused. Assistive technology reads it when the page opens. */
export function Notice({ tone, children }: { tone: Tone; children: Child }) {
  return (
    <p class={`notice ${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      {children}
    </p>
  )
}

export function Badge({ tone, children }: { tone: Tone; children: Child }) {
  return <span class={`badge ${tone}`}>{children}</span>
}

export function Facts({ rows }: { rows: readonly (readonly [name: string, value: Child])[] }) {
  return (
    <dl>
      {rows.map(([name, value]) => (
        <>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </>
      ))}
    </dl>
  )
}

/** How a column is shown: `number` is aligned right; the title of `actions` (buttons) is only read aloud. */
export type ColumnStyle = {
  kind?: 'text' | 'number' | 'actions'
  /** Hidden on a phone. */
  wide?: boolean
}

export type Column<Row> = ColumnStyle & { title: string; cell: (row: Row) => Child }

/** A table. On a phone each row becomes a card whose cells carry the column's title. */
export function Table<Row>(props: {
  caption: string
  columns: readonly Column<Row>[]
  rows: readonly Row[]
  rowId?: ((row: Row) => string) | undefined
  /** Without the titles of its columns on a phone, because the cells explain themselves. */
  isCompact?: boolean | undefined
}) {
  const { caption, columns, rows, rowId, isCompact } = props
  return (
    <table class={isCompact ? 'cells compact' : 'cells'}>
      <caption>{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th scope="col" class={nameClass(column)}>
              {column.kind === 'actions' ? (
                <span class="hidden">{column.title}</span>
              ) : (
                column.title
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr id={rowId?.(row)}>{columns.map((column) => renderCell(column, column.cell(row)))}</tr>
        ))}
      </tbody>
    </table>
  )
}

function renderCell(column: ColumnStyle & { title: string }, cell: Child) {
  if (column.kind === 'actions') return <td>{cell}</td>
  return (
    <td data-label={column.title} class={nameClass(column)}>
      {/* One child, so that a cell of several parts stays in one column on a phone. */}
      <span>{cell}</span>
    </td>
  )
}

function nameClass({ kind, wide = false }: ColumnStyle): string | undefined {
  return [kind === 'number' && 'number', wide && 'wide'].filter(Boolean).join(' ') || undefined
}

/** A form field with label, hint and problem. `children` gets the attributes that connect them. */
export function Field(props: {
  name: string
  /** Needed if several fields on a page have the same name. */
  id?: string
  label: string
  hint?: string | undefined
  problem?: string | undefined
  children: (attributes: FieldAttributes) => Child
}) {
  const { name, id = name, label, hint, problem, children } = props
  const described = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ')
  const attributes: FieldAttributes = {
    id,
    name,
    'aria-describedby': described || undefined,
    'aria-invalid': problem ? 'true' : undefined,
    autofocus: problem !== undefined,
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(attributes)}
      {hint && (
        <span class="hint" id={`${id}-hint`}>
          {hint}
        </span>
      )}
      {problem && (
        <span class="problem" id={`${id}-problem`}>
          {problem}
        </span>
      )}
    </div>
  )
}

type FieldAttributes = {
  id: string
  name: string
  'aria-describedby': string | undefined
  'aria-invalid': 'true' | undefined
  /** If several fields have a problem, browsers focus the first. */
  autofocus: boolean
}

/** An id. A script adds a button to copy it. */
export function Identifier({ children }: { children: string }) {
  return <code data-copy>{children}</code>
}

/** Formats a time (ISO 8601, UTC) to the second, for sentences. */
export function formatTime(iso: string): string {
  return `${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC`
}
