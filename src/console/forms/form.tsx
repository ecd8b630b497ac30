import type { Child } from 'hono/jsx'
import type { ConsoleRequest } from '../env.ts'
import { nameThisPage } from './draft.ts'
import { isUnsafe, PAGE_FIELD, TOKEN_FIELD } from './protect-forms.ts'

/**
 * A form that changes something: it carries the session's token, and the page that it is on, to which a person who has
 * to sign in first returns. `fields` are hidden.
 */
export function Form(props: {
  c: ConsoleRequest
  action: string
  stacked?: boolean
  fields?: Readonly<Record<string, string>>
  children: Child
}) {
  const { c, action, stacked, fields = {}, children } = props
  const page = isUnsafe(c) ? c.get('form')?.[PAGE_FIELD] : nameThisPage(c)
  return (
    <form method="post" action={action} class={stacked ? 'stacked' : undefined}>
      <input type="hidden" name={TOKEN_FIELD} value={c.get('makeFormToken')()} />
      <input type="hidden" name={PAGE_FIELD} value={page ?? '/console'} />
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {children}
    </form>
  )
}
