import { z } from '@hono/zod-openapi'
import { type Listing, readListing, walkListing } from '../access/listing.ts'
import { DomainError } from '../errors.ts'
import { Day } from '../http/fields.ts'
import type { Page } from '../http/list.ts'
import { readWrittenAmount } from '../money.ts'
import { type ListColumn, TableCard } from './cells.tsx'
import type { ConsoleContext, ConsoleRequest } from './env.ts'
import { respondCsvFile, respondXlsxFile } from './export.ts'
import { Select, TextInput } from './forms.tsx'
import { renderConsolePage } from './layout.tsx'
import type { Mount } from './page.ts'
import type { NameIn } from './texts/text.ts'
import { listTexts, nameIn, nameZone, requireScope, t, toRange, useView } from './view.ts'

/** `choices` are the groups of texts for the values of filters. */
type ListPage<Query extends z.ZodRawShape, Row extends object> = {
  name: NameIn<'frame.pages'>
  listing: Listing<Query, Row>
  choices: { readonly [name in keyof Query]?: string }
  columns: readonly ListColumn<Row>[]
}

/** Defines a list at `/console/{name}`, as pages and as files of everything that the filters leave. */
export function defineList<Query extends z.ZodRawShape, Row extends object>(
  listing: Listing<Query, Row>,
  page: Omit<ListPage<Query, NoInfer<Row>>, 'listing'>,
): Mount {
  const list = { listing, ...page }
  return (app, ctx) => app.get(`/console/${page.name}`, (c) => respondList(ctx, c, list))
}

async function respondList<Query extends z.ZodRawShape, Row extends object>(
  ctx: ConsoleContext,
  c: ConsoleRequest,
  list: ListPage<Query, Row>,
): Promise<Response> {
  const { listing, name } = list
  requireScope(c, listing.scope)
  const access = c.get('access')
  const given = c.req.query()
  const { format, cursor } = given
  if (!['csv', 'xlsx', undefined].includes(format)) {
    throw new DomainError('invalid_request', t('lists.problems.format'))
  }
  const { asked, problems } = readFilters(listing, given)
  const merchantCode = given.account || undefined
  if (asked && format !== undefined) {
    const pages = walkListing(ctx, access, listing, { ...asked, merchantCode })
    if (format === 'csv') return await respondCsvFile(ctx.log, c, list, pages)
    return await respondXlsxFile(c, list, pages)
  }
  // With an unreadable filter the list is empty: more rows than were asked for would mislead.
  const page = asked
    ? await readListing(ctx, access, listing, { ...asked, merchantCode, limit: PAGE_ROWS, cursor })
    : { data: [], nextCursor: null }
  return await renderConsolePage(
    c,
    { title: t(`frame.pages.${name}`), current: name, status: asked ? 200 : 422 },
    <ListBody {...{ list, given, problems, page }} accounts={access.merchants} />,
  )
}

/** As many as a phone shows without much scrolling. */
const PAGE_ROWS = 25

function ListBody<Query extends z.ZodRawShape, Row extends object>(props: {
  list: ListPage<Query, Row>
  given: Readonly<Record<string, string>>
  problems: FilterProblems
  accounts: readonly string[]
  page: Page<Row>
}) {
  const { list, given, problems, accounts, page } = props
  const view = useView()
  const { data, nextCursor } = page
  const isShortened = nextCursor !== null && data.length > 0 && data.length < PAGE_ROWS
  const { cursor, format: _, notice: __, kept: ___, ...filters } = given
  const link = (more: Record<string, string>) => `?${new URLSearchParams({ ...filters, ...more })}`
  const names = Object.keys(list.listing.query)
  return (
    <>
      <form method="get">
        {names.map((name) => (
          <FilterField {...{ name, given, problems }} choices={list.choices[name]} />
        ))}
        {accounts.length < 2 ? null : (
          <FilterField {...{ name: 'account', given, problems }} choices={accounts} />
        )}
        <button type="submit">{t('lists.submit')}</button>
        {names.includes('from') ? (
          <span class="hint">{t('lists.days', { zone: nameZone(view.zone) })}</span>
        ) : null}
      </form>
      <TableCard
        {...{ title: t(`frame.pages.${list.name}`), note: t('lists.rows'), isCompact: true }}
        {...{ columns: list.columns, rows: data }}
        empty={t(nextCursor === null ? 'lists.none' : 'lists.noneSoFar')}
      >
        {isShortened ? <p>{t('lists.shortened')}</p> : null}
        <div class="row">
          {cursor === undefined ? null : <a href={link({})}>{t('lists.first')}</a>}
          {nextCursor === null ? null : (
            <a href={link({ cursor: nextCursor })}>{t('lists.next')}</a>
          )}
          <a href={link({ format: 'csv' })}>{t('lists.csv')}</a>
          <a href={link({ format: 'xlsx' })}>{t('lists.xlsx')}</a>
        </div>
      </TableCard>
    </>
  )
}

function FilterField(props: {
  name: string
  given: Readonly<Record<string, string>>
  problems: FilterProblems
  choices: string | readonly string[] | undefined
}) {
  const { name, given, problems, choices } = props
  const label = nameIn('field', name)
  const field = { name, label, value: given[name], problem: problems[name] }
  if (choices === undefined) {
    const type = findKind(name, false) === 'day' ? 'date' : 'text'
    return <TextInput {...{ ...field, type, maxlength: 128 }} />
  }
  const all =
    typeof choices === 'string' ? listTexts(choices) : choices.map((one) => [one, one] as const)
  const options = [['', t('lists.any')] as const, ...all]
  return <Select {...field} options={options.map(([value, label]) => ({ value, label }))} />
}

type FilterProblems = Partial<Record<string, string>>

function findKind(name: string, isChoice: boolean) {
  if (name === 'from' || name === 'to') return 'day'
  if (name === 'amount') return 'amount'
  return isChoice ? 'choice' : 'text'
}

/** Reads the filters of a person, whose days are those of their zone. @returns what to ask for, or what is wrong */
function readFilters<Query extends z.ZodRawShape>(
  { query }: Pick<Listing<Query, object>, 'query'>,
  given: Readonly<Record<string, string>>,
): { asked?: z.output<z.ZodObject<Query>>; problems: FilterProblems } {
  const problems: FilterProblems = {}
  const entered = Object.entries(given).filter(
    ([name, text]) => name in query && text.trim() !== '',
  )
  const texts = Object.fromEntries(entered.map(([name, text]) => [name, text.trim()]))
  const { from, to, amount, ...others } = texts
  for (const [name, day] of Object.entries({ from, to })) {
    if (day !== undefined && !Day.safeParse(day).success) problems[name] = problemOf(name)
  }
  const days = problems.from || problems.to ? {} : toRange(useView().zone, { from, to })
  const plain = amount === undefined ? {} : { amount: readWrittenAmount(amount) ?? amount }
  const parsed = z.object(query).safeParse({ ...others, ...plain, ...days })
  for (const { path } of parsed.error?.issues ?? []) {
    const name = String(path[0])
    problems[name] ??= problemOf(name, query[name])
  }
  return parsed.success && Object.keys(problems).length === 0
    ? { asked: parsed.data, problems }
    : { problems }
}

function problemOf(name: string, schema?: unknown): string {
  const bare = schema instanceof z.ZodOptional ? schema.unwrap() : schema
  return t(`lists.problems.${findKind(name, bare instanceof z.ZodEnum)}`)
}
