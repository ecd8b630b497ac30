import type { Child } from 'hono/jsx'
import { type ColumnStyle, Badge as Sign, type Tone } from '../platform/html/components.tsx'
import { describeZone, formatClock } from './days.ts'
import { formatMoney } from './format-money.ts'
import { TEXTS } from './texts/en.ts'
import { useView, type View } from './view.tsx'

/** What an export writes of a cell: a number and a time are ones to the spreadsheet as well. */
export type CellValue = string | null | { number: string } | { time: string }

/** A column of a list: from the same line come its cells on the page and in every file. */
export type ListColumn<Row> = ColumnStyle & {
  title: keyof typeof TEXTS.lists.columns
  cell: (row: Row) => Child
  value: (row: Row) => CellValue
  /** Its title names the zone. */
  isTime?: true
  /** Only in files: the page says it elsewhere, or has no room for it. */
  exportOnly?: boolean
}

type Options = { wide?: boolean; exportOnly?: boolean }
type Title = ListColumn<never>['title']

/** A text as it is. */
export function text<Row>(
  title: Title,
  value: (row: Row) => string | null,
  options: Options = {},
): ListColumn<Row> {
  return { title, value, cell: (row) => value(row) ?? '', ...options }
}

/** A text that leads to a page about the row; `instead` is what the page shows where there is no text. */
export function link<Row>(
  title: Title,
  value: (row: Row) => string | null,
  path: (row: NoInfer<Row>) => string,
  { instead, ...options }: Options & { instead?: (row: NoInfer<Row>) => string } = {},
): ListColumn<Row> {
  const cell = (row: Row) => <a href={path(row)}>{value(row) ?? instead?.(row)}</a>
  return { title, value, cell, ...options }
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

/** A state in words, with how it is meant. */
export function state<Row>(title: Title, value: (row: Row) => [words: string, tone: Tone]) {
  const column: ListColumn<Row> = {
    title,
    value: (row) => value(row)[0],
    cell: (row) => <Sign tone={value(row)[1]}>{value(row)[0]}</Sign>,
  }
  return column
}

/** A time in the reader's zone, which stands in the title. */
export function time<Row>(
  title: Title,
  value: (row: Row) => string,
  options: Options = {},
): ListColumn<Row> {
  return {
    title,
    isTime: true,
    value: (row) => ({ time: value(row) }),
    cell: (row) => <Time iso={value(row)} bare />,
    ...options,
  }
}

/** The title of a column as the reader sees it. */
export function nameColumn(
  { zone }: View,
  { title, isTime }: Pick<ListColumn<never>, 'title' | 'isTime'>,
  now: number,
): string {
  const name = TEXTS.lists.columns[title]
  return isTime ? TEXTS.lists.inZone(name, describeZone(zone, now)) : name
}

/** A time as the reader's clock shows it, bare where the zone stands elsewhere; a script adds how long ago that is. */
export function Time({ iso, bare = false }: { iso: string; bare?: boolean }) {
  const view = useView()
  return (
    <time datetime={iso} data-relative>
      {bare ? formatClock(view.zone, iso) : formatTime(view, iso)}
    </time>
  )
}

/** Formats a time (ISO 8601) to the second in the reader's zone, for sentences: `2026-11-22 17:00:00 GMT+7`. */
export function formatTime({ zone }: View, iso: string): string {
  return `${formatClock(zone, iso)} ${describeZone(zone, Date.parse(iso))}`
}
