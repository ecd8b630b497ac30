import type { ListedSession } from '../access/sessions.ts'
import { Badge, DataTable } from '../platform/html/components.tsx'
import { Time } from './cells.tsx'
import type { ConsoleRequest } from './env.ts'
import { Form } from './forms/form.tsx'
import { TEXTS } from './texts/en.ts'

/** The live sessions of a person, each with a button that ends it. */
export function SessionTable(props: {
  c: ConsoleRequest
  sessions: readonly ListedSession[]
  /** The path of the button. */
  endPath: (sessionId: string) => string
}) {
  const { c, sessions, endPath } = props
  const { caption, columns, thisBrowser, end, none } = TEXTS.account.sessions
  if (sessions.length === 0) return <p class="soft">{none}</p>
  return (
    <DataTable
      caption={caption}
      columns={[
        { title: columns.browser },
        { title: columns.address },
        { title: columns.signedIn },
        { title: columns.lastUsed },
        { title: columns.ends },
        { title: end, kind: 'actions' },
      ]}
      rows={sessions.map(({ id, userAgent, address, signedInAt, lastUsedAt, expiresAt }) => [
        <>
          {userAgent}{' '}
          {id === c.get('session')?.id ? <Badge tone="good">{thisBrowser}</Badge> : null}
        </>,
        address,
        <Time iso={signedInAt} />,
        <Time iso={lastUsedAt} />,
        <Time iso={expiresAt} />,
        <Form c={c} action={endPath(id)}>
          <button class="quiet" type="submit">
            {end}
          </button>
        </Form>,
      ])}
    />
  )
}
