import type { Child } from 'hono/jsx'
import type { ConsoleRequest } from '../env.ts'
import { TOKEN_FIELD } from './protect-forms.ts'

/** A form that changes something: it carries the session's token. `fields` are hidden. */
export function Form(props: {
  c: ConsoleRequest
  action: string
  stacked?: boolean
  fields?: Readonly<Record<string, string>>
  children: Child
}) {
  const { c, action, stacked, fields = {}, children } = props
  return (
    <form method="post" action={action} class={stacked ? 'stacked' : undefined}>
      <input type="hidden" name={TOKEN_FIELD} value={c.get('makeFormToken')()} />
      {Object.entries(fields).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {children}
    </form>
  )
}
