import { Field } from '../../platform/html/components.tsx'
import { t } from '../view.ts'
import { type ReadQuery, STATES } from './read-query.ts'

/** The search: one box, and filters beside it. */
export function SearchForm(props: {
  given: Readonly<Record<string, string>>
  problems: ReadQuery['problems']
  /** The accounts to choose from; none for who has one. */
  accounts: readonly string[]
}) {
  const { given, problems, accounts } = props
  return (
    <search>
      <form method="get" action="/console">
        <Field name="q" label={t('search.label')} hint={t('search.hint')} problem={problems.q}>
          {(attributes) => (
            <input
              {...attributes}
              type="search"
              value={given.q}
              maxlength={128}
              autocomplete="off"
            />
          )}
        </Field>
        <Field name="state" label={t('search.state')} problem={problems.state}>
          {(attributes) => (
            <select {...attributes}>
              <option value="">{t('search.anyState')}</option>
              {STATES.map((state) => (
                <option value={state} selected={given.state === state}>
                  {t(`states.transaction.${state}`)}
                </option>
              ))}
            </select>
          )}
        </Field>
        <DayField name="from" given={given} label={t('search.from')} problem={problems.from} />
        <DayField name="to" given={given} label={t('search.to')} problem={problems.to} />
        {accounts.length < 2 ? null : (
          <Field name="account" label={t('field.account')} problem={problems.account}>
            {(attributes) => (
              <select {...attributes}>
                <option value="">{t('search.anyAccount')}</option>
                {accounts.map((code) => (
                  <option value={code} selected={given.account === code}>
                    {code}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        <button type="submit">{t('search.submit')}</button>
      </form>
    </search>
  )
}

function DayField(props: {
  name: 'from' | 'to'
  given: Readonly<Record<string, string>>
  label: string
  problem: string | undefined
}) {
  const { name, given, label, problem } = props
  return (
    <Field name={name} label={label} problem={problem}>
      {(attributes) => <input {...attributes} type="date" value={given[name]} />}
    </Field>
  )
}
