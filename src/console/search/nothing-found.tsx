import { Card, Field } from '../../platform/html/components.tsx'
import type { ConsoleRequest } from '../env.ts'
import { Form } from '../forms/form.tsx'
import { hasScope } from '../permissions.ts'
import { TEXTS } from '../texts/en.ts'
import { looksLikeId } from './read-query.ts'

const { none, account } = TEXTS.search

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
      <Card title={none.title(text)}>
        {leftOut ? (
          <p>
            {none.filtered}{' '}
            <a href={`/console?q=${encodeURIComponent(text)}`}>{none.withoutFilters}</a>
          </p>
        ) : null}
        <p>{none.searched(hasScope(c, 'refunds:read'))}</p>
        <ul>
          {none.advice.map((one) => (
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
    <Card title={none.ask}>
      <p>{none.askWhy}</p>
      <Form c={c} action="/console/transactions" fields={fields}>
        {second === undefined ? null : (
          <Field name="merchantCode" label={account}>
            {(attributes) => (
              <select {...attributes} required>
                {accounts.map((code) => (
                  <option value={code}>{code}</option>
                ))}
              </select>
            )}
          </Field>
        )}
        <button type="submit">{none.askNow}</button>
      </Form>
    </Card>
  )
}
