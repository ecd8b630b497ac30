import { EVERY_MERCHANT } from '../access/keys.ts'
import { endSession, type ListedSession } from '../access/sessions.ts'
import { ROLES } from '../access/types.ts'
import { DomainError } from '../errors.ts'
import { isUuid } from '../http/fields.ts'
import { Badge, Facts } from '../platform/html/components.tsx'
import type { Tx } from '../platform/postgres/types.ts'
import { cell, type ListColumn, Rows, text, time } from './cells.tsx'
import { Form } from './forms.tsx'
import { t, usePerson } from './view.ts'

export const nameMerchant = (code: string) =>
  code === EVERY_MERCHANT ? t('account.everyMerchant') : code

/** @throws DomainError `not_found` for a session that is not the person's, or has ended */
export async function endOne(tx: Tx, personId: string, sessionId: string): Promise<void> {
  const isEnded = isUuid(sessionId) && (await endSession(tx, personId, sessionId))
  if (!isEnded) throw new DomainError('not_found', 'There is no such session')
}

/** What a person may do, and where. */
export function PersonFacts(props: {
  email?: string | null
  roles: readonly string[]
  merchants: readonly string[]
}) {
  const { email, roles, merchants } = props
  const own = ROLES.filter((role) => roles.includes(role))
  return (
    <Facts
      rows={[
        ...(email ? [[t('field.email'), email] as const] : []),
        [t('field.roles'), own.map((role) => <div>{t(`account.roles.${role}`)}</div>)],
        [t('field.merchants'), merchants.map(nameMerchant).join(', ')],
      ]}
    />
  )
}

/** The live sessions of a person, each with a button that ends it. */
export function Sessions({ of, path }: { of: readonly ListedSession[]; path: string }) {
  const { sessionId } = usePerson()
  const columns: readonly ListColumn<ListedSession>[] = [
    cell(
      'browser',
      ({ userAgent }) => userAgent,
      ({ id, userAgent }) => (
        <>
          {userAgent}{' '}
          {id === sessionId ? <Badge tone="good">{t('account.sessions.thisBrowser')}</Badge> : null}
        </>
      ),
    ),
    text('address', ({ address }) => address),
    time('signedIn', ({ signedInAt }) => signedInAt),
    time('lastUsed', ({ lastUsedAt }) => lastUsedAt),
    time('ends', ({ expiresAt }) => expiresAt),
    cell(
      'actions',
      () => null,
      ({ id }) => (
        <Form action={`${path}/sessions/${id}/end`}>
          <button class="quiet" type="submit">
            {t('account.sessions.end')}
          </button>
        </Form>
      ),
    ),
  ]
  const caption = t('field.sessions')
  return <Rows {...{ caption, columns, rows: of, empty: t('account.sessions.none') }} />
}
