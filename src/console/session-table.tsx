import type { ListedSession } from '../access/sessions.ts'
import { Badge, DataTable } from '../platform/html/components.tsx'
import { Time } from './cells.tsx'
import type { ConsoleRequest } from './env.ts'
import { Form } from './forms/form.tsx'
import { t } from './view.ts'

/** The live sessions of a person, each with a button that ends it. */
export function SessionTable(props: {
  c: ConsoleRequest
  sessions: readonly ListedSession[]
  /** The path of the button. */
  endPath: (sessionId: string) => string
}) {
  const { c, sessions, endPath } = props
  if (sessions.length === 0) return <p class="soft">{t('account.sessions.none')}</p>
  return (
    <DataTable
      caption={t('field.sessions')}
      columns={[
        { title: t('field.browser') },
        { title: t('field.address') },
        { title: t('field.signedIn') },
        { title: t('field.lastUsed') },
        { title: t('field.ends') },
        { title: t('account.sessions.end'), kind: 'actions' },
      ]}
      rows={sessions.map(({ id, userAgent, address, signedInAt, lastUsedAt, expiresAt }) => [
        <>
          {userAgent}{' '}
          {id === c.get('session')?.id ? (
            <Badge tone="good">{t('account.sessions.thisBrowser')}</Badge>
          ) : null}
        </>,
        address,
        <Time iso={signedInAt} />,
        <Time iso={lastUsedAt} />,
        <Time iso={expiresAt} />,
        <Form c={c} action={endPath(id)}>
          <button class="quiet" type="submit">
            {t('account.sessions.end')}
          </button>
        </Form>,
      ])}
    />
  )
}
