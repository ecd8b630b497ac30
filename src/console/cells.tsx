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

/** What an export writes into a cell. A spreadsheet takes numbers and times as such. */
export type CellValue = string | null | { number: string } | { time: string }

export type ListColumn<Row> = ColumnStyle & {
  title: NameIn<'field'>
  cell: (row: Row) => Child
  value: (row: Row) => CellValue
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

/** A column of any content, for tables that are not exported. */
export function cell<Row>(
  title: Title,
  write: (row: Row) => Child,
  style: Pick<ColumnStyle, 'kind'> = {},
): ListColumn<Row> {
  return { title, value: () => null, cell: write, ...style }
}

/** A link to a page about the row. Without a text, the page shows `instead`. */
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

/** An amount. Files have its currency in another column, so that amounts can be added up. */
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

/** A time (ISO 8601). The page shows `none` for null. */
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
  /** Shown instead of a table without rows. */
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

/** A time in the reader's zone, which is not named if `bare`. A script adds how long ago it is. */
export function Time({ iso, bare = false }: { iso: string; bare?: boolean }) {
  return (
    <time datetime={iso} data-relative>
      {bare ? writeClock(iso) : formatTime(iso)}
    </time>
  )
}

/** Formats a time (ISO 8601) in the reader's zone: `2026-11-22 17:00:00 GMT+7`. */
function formatTime(iso: string): string {
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

/** English has no order of day and month that everybody reads alike, so it is that of ISO 8601. */
function writeClock(iso: string): string {
  const { language, zone: timeZone } = useView()
  if (language === 'en') return formatClock(timeZone, iso)
  return new Intl.DateTimeFormat(language, { ...CLOCK, timeZone }).format(Date.parse(iso))
}

type CardOptions = { title: string; id?: string; note?: Child; children?: Child }

export function TableCard<Row>(props: CardOptions & Omit<RowsProps<Row>, 'caption'>) {
  const { title, id, note, children, ...table } = props
  return (
    <Card {...{ title, id, note }}>
      <Rows caption={title} {...table} />
      {children}
    </Card>
  )
}

/** Facts by the names of fields. Those without a value are left out. */
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
