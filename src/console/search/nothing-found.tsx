import { Card, Field } from '../../platform/html/components.tsx'
import type { ConsoleRequest } from '../env.ts'
import { Form } from '../forms/form.tsx'
import { hasScope } from '../permissions.ts'
import { listTexts, t } from '../view.ts'
import { looksLikeId } from './read-query.ts'

type Props = {
  c: ConsoleRequest
  text: string
  /** Something was found, and the filters leave it out. */
  leftOut: boolean
  accounts: readonly string[]
}

/** What was searched without a result, and what else to try. */
export function NothingFound(props: Props) {
  const { c, text, leftOut } = props
  return (
    <>
      <Card title={t('search.none.title', { query: text })}>
        {leftOut ? (
          <p>
            {t('search.none.filtered')}{' '}
            <a href={`/console?q=${encodeURIComponent(text)}`}>{t('search.none.withoutFilters')}</a>
          </p>
        ) : null}
        <p>{t(hasScope(c, 'refunds:read') ? 'search.none.searchedAll' : 'search.none.searched')}</p>
        <ul>
          {listTexts('search.none.advice').map(([, one]) => (
            <li>{one}</li>
          ))}
        </ul>
      </Card>
      {looksLikeId(text) && !leftOut ? <Ask {...props} /> : null}
    </>
  )
}

/** Asks the gateway about a transaction that is not known here. */
function Ask({ c, text, accounts }: Props) {
  const [only, second] = accounts
  const fields = { transactionId: text, ...(second || !only ? {} : { merchantCode: only }) }
  return (
    <Card title={t('search.none.ask')}>
      <p>{t('search.none.askWhy')}</p>
      <Form c={c} action="/console/transactions" fields={fields}>
        {second === undefined ? null : (
          <Field name="merchantCode" label={t('field.account')}>
            {(attributes) => (
              <select {...attributes} required>
                {accounts.map((code) => (
                  <option value={code}>{code}</option>
                ))}
              </select>
            )}
          </Field>
        )}
        <button type="submit">{t('search.none.askNow')}</button>
      </Form>
    </Card>
  )
}
