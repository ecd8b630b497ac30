import { Identifier } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import type { TroubledEndpoint } from '../webhooks/log.ts'
import { Time } from './cells.tsx'
import { storyPath } from './paths.ts'
import { count, t } from './view.ts'

/** Since when an endpoint fails, and why it was disabled. */
export function Failing({ failingSince, disabledAt, disabledReason }: TroubledEndpoint) {
  const since = failingSince ?? disabledAt
  return (
    <>
      {since === null ? null : <Time iso={toIso(since)} />}{' '}
      {disabledReason === null ? null : t(`tasks.endpoint.disabled.${disabledReason}`)}
    </>
  )
}

/** The last answer of an endpoint. */
export function Answer({ httpStatus, error, answer }: TroubledEndpoint) {
  return (
    <>
      {httpStatus === null
        ? t('tasks.endpoint.noAnswer')
        : t('tasks.endpoint.status', { status: httpStatus })}{' '}
      <small class="soft">{answer || error}</small>
    </>
  )
}

/** When an endpoint is tried again, and how much waits for it. */
export function NextAttempt({ nextAttemptAt, disabledAt, pending }: TroubledEndpoint) {
  return (
    <>
      {disabledAt !== null ? (
        t('tasks.endpoint.never')
      ) : nextAttemptAt === null ? (
        t('tasks.endpoint.atOnce')
      ) : (
        <Time iso={toIso(nextAttemptAt)} />
      )}{' '}
      <small class="soft">
        {pending >= 100
          ? t('tasks.endpoint.pendingMost')
          : count('tasks.endpoint.pending', pending)}
      </small>
    </>
  )
}

/** The transaction of the newest event that failed. */
export function NewestEvent({ transactionId, eventMerchantCode }: TroubledEndpoint) {
  if (transactionId === null) return null
  if (eventMerchantCode === null) return <Identifier>{transactionId}</Identifier>
  return <a href={storyPath({ merchantCode: eventMerchantCode, transactionId })}>{transactionId}</a>
}
