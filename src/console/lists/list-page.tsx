import { DEFAULT_LIMIT, type Page } from '../../http/list.ts'
import { Card, DataTable, Field } from '../../platform/html/components.tsx'
import { TEXTS } from '../texts/en.ts'
import type { ListKind } from './list-kind.ts'
import type { Filter, ReadFilters } from './read-filters.ts'

const { titles, fields, any, submit, csv, none, next, first, rows: order } = TEXTS.lists
const { noneSoFar, shortened } = TEXTS.lists

type Props<T extends object> = {
  kind: ListKind<T>
  given: Readonly<Record<string, string>>
  problems: ReadFilters['problems']
  accounts: readonly string[]
  page: Page<T>
}

/** The filters of a list, and a page of it. */
export function ListPage<T extends object>({ kind, given, problems, accounts, page }: Props<T>) {
  const { data, nextCursor } = page
  const isShortened = nextCursor !== null && data.length > 0 && data.length < DEFAULT_LIMIT
  const { cursor, format: _, notice: __, ...filters } = given
  const link = (more: Record<string, string>) => `?${new URLSearchParams({ ...filters, ...more })}`
  const choices = Object.fromEntries(accounts.map((code) => [code, code]))
  const account: Filter[] =
    accounts.length > 1 ? [{ name: 'account', kind: 'choice', choices }] : []
  return (
    <>
      <form method="get">
        {[...kind.filters, ...account].map((filter) => (
          <FilterField filter={filter} value={given[filter.name]} problem={problems[filter.name]} />
        ))}
        <button type="submit">{submit}</button>
      </form>
      <Card title={titles[kind.name]} note={order}>
        {data.length === 0 ? (
          <p>{nextCursor === null ? none : noneSoFar}</p>
        ) : (
          <DataTable
            caption={titles[kind.name]}
            columns={kind.columns}
            rows={data.map((row) => kind.show(row))}
          />
        )}
        {isShortened ? <p>{shortened}</p> : null}
        <div class="row">
          {cursor === undefined ? null : <a href={link({})}>{first}</a>}
          {nextCursor === null ? null : <a href={link({ cursor: nextCursor })}>{next}</a>}
          <a href={link({ ...(cursor === undefined ? {} : { cursor }), format: 'csv' })}>{csv}</a>
        </div>
      </Card>
    </>
  )
}

function FilterField(props: {
  filter: Filter
  value: string | undefined
  problem: string | undefined
}) {
  const { filter, value, problem } = props
  const { name, kind, choices = {} } = filter
  return (
    <Field name={name} label={fields[name]} problem={problem}>
      {(attributes) =>
        kind === 'choice' ? (
          <select {...attributes}>
            <option value="">{any}</option>
            {Object.entries(choices).map(([choice, text]) => (
              <option value={choice} selected={choice === value}>
                {text}
              </option>
            ))}
          </select>
        ) : (
          <input
            {...attributes}
            type={kind === 'day' ? 'date' : 'text'}
            value={value}
            maxlength={128}
            autocomplete="off"
          />
        )
      }
    </Field>
  )
}
