import { Identifier } from '../platform/html/components.tsx'
import { toIso } from '../platform/postgres/row-set.ts'
import type { TroubledEndpoint } from '../webhooks/log.ts'
import { cell, id, type ListColumn, Time } from './cells.tsx'
import { ActionForm } from './forms.tsx'
import { storyPath } from './paths.ts'
import { count, t } from './view.ts'

/** Endpoints that fail or were disabled: since when and why, the last answer, and the newest event that failed. */
export const ENDPOINTS: readonly ListColumn<TroubledEndpoint>[] = [
  id('address', ({ url }) => url),
  cell('since', ({ failingSince, disabledAt, disabledReason }) => {
    const since = failingSince ?? disabledAt
    return (
      <>
        {since && <Time iso={toIso(since)} />}{' '}
        {disabledReason && t(`tasks.endpoint.disabled.${disabledReason}`)}
      </>
    )
  }),
  cell('answer', ({ httpStatus: status, error, answer }) => (
    <>
      {status === null ? t('tasks.endpoint.noAnswer') : t('tasks.endpoint.status', { status })}{' '}
      <small class="soft">{answer || error}</small>
    </>
  )),
  cell('next', ({ nextAttemptAt: at, disabledAt, pending }) => (
    <>
      {disabledAt !== null ? t('tasks.endpoint.never') : null}
      {disabledAt === null ? at ? <Time iso={toIso(at)} /> : t('tasks.endpoint.atOnce') : null}{' '}
      <small class="soft">
        {pending >= 100
          ? t('tasks.endpoint.pendingMost')
          : count('tasks.endpoint.pending', pending)}
      </small>
    </>
  )),
  cell('event', ({ transactionId, eventMerchantCode: merchantCode }) => {
    if (transactionId === null) return null
    if (merchantCode === null) return <Identifier>{transactionId}</Identifier>
    return <a href={storyPath({ merchantCode, transactionId })}>{transactionId}</a>
  }),
  cell(
    'actions',
    (one) => (
      <ActionForm
        action={`/console/webhooks/${encodeURIComponent(one.id)}/enable`}
        submit={t('tasks.endpoint.enable')}
      />
    ),
    { kind: 'actions' },
  ),
]
