import type { z } from '@hono/zod-openapi'
import type { Page } from '../../http/list.ts'
import { Card, Field } from '../../platform/html/components.tsx'
import { Rows } from '../cells.tsx'
import { describeZone } from '../days.ts'
import { listTexts, t, useView } from '../view.ts'
import type { ListPage } from './lists.tsx'
import { type FilterName, type FilterProblems, findKind, listFilters } from './read-filters.ts'

/** Rows of a page of the console: a phone shows them without much scrolling. */
export const PAGE_ROWS = 25

type Props<Query extends z.ZodRawShape, Row extends object> = {
  list: ListPage<Query, Row>
  given: Readonly<Record<string, string>>
  problems: FilterProblems
  accounts: readonly string[]
  page: Page<Row>
}

/** The filters of a list, and a page of it. */
export function ListBody<Query extends z.ZodRawShape, Row extends object>(
  props: Props<Query, Row>,
) {
  const { list, given, problems, accounts, page } = props
  const view = useView()
  const { data, nextCursor } = page
  const isShortened = nextCursor !== null && data.length > 0 && data.length < PAGE_ROWS
  const { cursor, format: _, notice: __, ...filters } = given
  const link = (more: Record<string, string>) => `?${new URLSearchParams({ ...filters, ...more })}`
  const names = listFilters(list.listing.query)
  return (
    <>
      <form method="get">
        {names.map((name) => (
          <FilterField {...{ name, given, problems }} choices={list.choices[name]} />
        ))}
        {accounts.length < 2 ? null : (
          <FilterField {...{ name: 'account' as const, given, problems }} choices={accounts} />
        )}
        <button type="submit">{t('lists.submit')}</button>
        {names.includes('from') ? (
          <span class="hint">{t('lists.days', { zone: describeZone(view.zone, Date.now()) })}</span>
        ) : null}
      </form>
      <Card title={t(`lists.titles.${list.name}`)} note={t('lists.rows')}>
        <Rows
          caption={t(`lists.titles.${list.name}`)}
          columns={list.columns}
          rows={data}
          empty={t(nextCursor === null ? 'lists.none' : 'lists.noneSoFar')}
        />
        {isShortened ? <p>{t('lists.shortened')}</p> : null}
        <div class="row">
          {cursor === undefined ? null : <a href={link({})}>{t('lists.first')}</a>}
          {nextCursor === null ? null : (
            <a href={link({ cursor: nextCursor })}>{t('lists.next')}</a>
          )}
          <a href={link({ format: 'csv' })}>{t('lists.csv')}</a>
          <a href={link({ format: 'xlsx' })}>{t('lists.xlsx')}</a>
        </div>
      </Card>
    </>
  )
}

function FilterField(props: {
  name: FilterName
  given: Readonly<Record<string, string>>
  problems: FilterProblems
  /** The group of the texts to choose from, or the values themselves. */
  choices: string | readonly string[] | undefined
}) {
  const { name, given, problems, choices } = props
  const value = given[name]
  const type = findKind(name, choices !== undefined) === 'day' ? 'date' : 'text'
  return (
    <Field name={name} label={t(`lists.fields.${name}`)} problem={problems[name]}>
      {(attributes) =>
        choices === undefined ? (
          <input {...attributes} type={type} value={value} maxlength={128} autocomplete="off" />
        ) : (
          <select {...attributes}>
            <option value="">{t('lists.any')}</option>
            {listChoices(choices).map(([choice, text]) => (
              <option value={choice} selected={choice === value}>
                {text}
              </option>
            ))}
          </select>
        )
      }
    </Field>
  )
}

function listChoices(choices: string | readonly string[]): [value: string, text: string][] {
  return typeof choices === 'string' ? listTexts(choices) : choices.map((one) => [one, one])
}
