import type { Child } from 'hono/jsx'
import {
  Badge,
  Card,
  type ColumnStyle,
  Facts,
  Identifier,
  Table,
} from '../platform/html/components.tsx'
import type { NameIn, PlainKey } from './texts/text.ts'
import { describeZone, formatClock, formatMoney, nameIn, nameZone, t, useView } from './view.ts'
import type { Sign } from './words.ts'

/** What an export writes of a cell: a number and a time are ones to the spreadsheet as well. */
export type CellValue = string | null | { number: string } | { time: string }

/** A column of a list: from the same line come its cells on the page and in every file. */
export type ListColumn<Row> = ColumnStyle & {
  title: NameIn<'field'>
  cell: (row: Row) => Child
  value: (row: Row) => CellValue
  /** Its title names the zone. */
  isTime?: true
  exportOnly?: boolean
}

type Options = { wide?: boolean; exportOnly?: boolean }
type Title = ListColumn<never>['title']

export function text<Row>(
  title: Title,
  value: (row: Row) => string | null,
  options: Options = {},
): ListColumn<Row> {
  return { title, value, cell: (row) => <Prose of={value(row) ?? ''} />, ...options }
}

/** A cell of its own kind, of a table that no file is made of. */
export function cell<Row>(
  title: Title,
  write: (row: Row) => Child,
  style: Pick<ColumnStyle, 'kind'> = {},
): ListColumn<Row> {
  return { title, value: () => null, cell: write, ...style }
}

/** A text that leads to a page about the row; the page shows `instead` where there is no text. */
export function link<Row>(
  title: Title,
  read: (row: Row) => [text: string | null, path: string, instead?: string],
  options: Options = {},
): ListColumn<Row> {
  const write = (row: Row) => {
    const [shown, path, instead] = read(row)
    return <a href={path}>{shown ?? instead}</a>
  }
  return { title, value: (row) => read(row)[0], cell: write, ...options }
}

/** An amount; the files have its currency in a column of its own, so that it can be added up. */
export function money<Row>(
  title: Title,
  value: (row: Row) => [amount: string, currency: string | null],
  options: Options = {},
): ListColumn<Row> {
  return {
    title,
    kind: 'number',
    value: (row) => ({ number: value(row)[0] }),
    cell: (row) => formatMoney(...value(row)),
    ...options,
  }
}

export function state<Row>(title: Title, value: (row: Row) => Sign): ListColumn<Row> {
  return { title, value: (row) => value(row)[0], cell: (row) => <State of={value(row)} /> }
}

/** A text in which lines do not break at the hyphens of an id. */
export function Prose({ of }: { of: string }) {
  const isId = (word: string) => word.includes('-') && /\d/.test(word)
  const words = of.split(/(\s+)/)
  return <>{words.map((word) => (isId(word) ? <span class="id">{word}</span> : word))}</>
}

export function State({ of: [words, tone] }: { of: Sign }) {
  return <Badge tone={tone}>{words}</Badge>
}

/** A moment; the page shows `none` where there is none. */
export function time<Row>(
  title: Title,
  value: (row: Row) => string | null,
  none: PlainKey = 'states.none',
): ListColumn<Row> {
  return {
    title,
    isTime: true,
    value: (row) => {
      const at = value(row)
      return at === null ? null : { time: at }
    },
    cell: (row) => {
      const at = value(row)
      return at === null ? t(none) : <Time iso={at} bare />
    },
  }
}

export function nameColumn({ title, isTime }: Pick<ListColumn<never>, 'title' | 'isTime'>): string {
  const name = t(`field.${title}`)
  const zone = nameZone(useView().zone)
  return isTime ? t('lists.inZone', { title: name, zone }) : name
}

type RowsProps<Row> = {
  caption: string
  columns: readonly ListColumn<Row>[]
  rows: readonly Row[]
  /** Instead of a table without rows. */
  empty?: string
  rowId?: (row: Row) => string
  isCompact?: boolean
}

export function Rows<Row>({ columns, empty, ...table }: RowsProps<Row>) {
  if (table.rows.length === 0 && empty !== undefined) return <p>{empty}</p>
  const shown = columns
    .filter(({ exportOnly }) => !exportOnly)
    .map((column) => ({ ...column, title: nameColumn(column) }))
  return <Table {...table} columns={shown} />
}

/** A time as the reader's clock shows it, bare where the zone stands elsewhere; a script adds how long ago that is. */
export function Time({ iso, bare = false }: { iso: string; bare?: boolean }) {
  return (
    <time datetime={iso} data-relative>
      {bare ? writeClock(iso) : formatTime(iso)}
    </time>
  )
}

/** Formats a time (ISO 8601) to the second in the reader's zone, for sentences: `2026-11-22 17:00:00 GMT+7`. */
export function formatTime(iso: string): string {
  return `${writeClock(iso)} ${describeZone(useView().zone, Date.parse(iso))}`
}

const CLOCK = {
  day: '2-digit',
  month: '2-digit',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
} as const

/** English has no order of days and months that everybody reads alike, so it has that of ISO 8601. */
function writeClock(iso: string): string {
  const { language, zone: timeZone } = useView()
  if (language === 'en') return formatClock(timeZone, iso)
  return new Intl.DateTimeFormat(language, { ...CLOCK, timeZone }).format(Date.parse(iso))
}

type CardOptions = { title: string; id?: string; note?: Child; children?: Child }

/** A table in a part of its own, with the title of that. */
export function TableCard<Row>(props: CardOptions & Omit<RowsProps<Row>, 'caption'>) {
  const { title, id, note, children, ...table } = props
  return (
    <Card {...{ title, id, note }}>
      <Rows caption={title} {...table} />
      {children}
    </Card>
  )
}

/** What is known about an object, by the names of fields; what has no value is left out. */
export function FieldFacts({ of }: { of: { readonly [name in Title]?: Child } }) {
  const rows = Object.entries(of).filter(([, value]) => value !== null && value !== undefined)
  const write = (value: Child) => (typeof value === 'string' ? <Prose of={value} /> : value)
  return <Facts rows={rows.map(([name, value]) => [nameIn('field', name), write(value)])} />
}

export const id = <Row,>(title: Title, value: (row: Row) => string | null) =>
  cell<Row>(title, (row) => {
    const shown = value(row)
    return shown === null ? '' : <Identifier>{shown}</Identifier>
  })

export function List({ items }: { items: readonly Child[] }) {
  return (
    <ul>
      {items.map((item) => (
        <li>{item}</li>
      ))}
    </ul>
  )
}
