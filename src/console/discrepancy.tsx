import { z } from 'zod'
import { addNote, assignDiscrepancy, resolveDiscrepancy } from '../decisions/discrepancies.ts'
import { EXTERNAL_OUTCOMES, resolveExternalRefund } from '../decisions/external.ts'
import { type DiscrepancyRow, rateKind } from '../discrepancies/kinds.ts'
import { DomainError } from '../errors.ts'
import { compareAmounts } from '../money.ts'
import { Card, Facts, Identifier } from '../platform/html/components.tsx'
import { deriveExternalState, findExternalRefund } from '../refunds/external-view.ts'
import { Annotations, annotations } from './annotate.tsx'
import { Time } from './cells.tsx'
import {
  findPathDiscrepancy,
  readDiscrepancyPage,
  type ShownDiscrepancyPage,
} from './discrepancy-subject.ts'
import { ExternalCard } from './external.tsx'
import { formatMoney } from './format-money.ts'
import { Form, TextArea } from './forms.tsx'
import { definePage, explainRefusal, parseFields, requireText } from './page.ts'
import { discrepancyPath, refundPagePath, storyPath } from './paths.ts'
import { can, count, listTexts, t, useKept } from './view.ts'
import { nameKind, nameSource } from './words.ts'

const ResolutionFields = z.object({
  reason: requireText('decisions.problems.reason'),
  shownAmount: z
    .string()
    .regex(/^-?\d{1,18}(\.\d{1,4})?$/)
    .optional()
    .catch(undefined),
})

const ExternalFields = z.object({
  externalId: z.uuid(),
  state: z.string().catch(''),
  externalOutcome: z.enum(EXTERNAL_OUTCOMES, 'decisions.problems.outcome'),
  externalReason: requireText('decisions.problems.reason'),
  againstEvidence: z.string().optional(),
})

const pathOf = ({ view }: ShownDiscrepancyPage) => discrepancyPath(view.merchantCode, view.id)

const explain = (error: DomainError) =>
  error.code === 'same_person' ? t('discrepancyPage.refused.same_person') : explainRefusal(error)

/** The page of one discrepancy: both sides, what they mean, and what to do. */
export const discrepancyPage = definePage<DiscrepancyRow>({
  path: '/console/discrepancies/:merchant/:id',
  scope: 'ops',
  load: findPathDiscrepancy,
  async show(ctx, c, row) {
    const shown = await readDiscrepancyPage(ctx, c, row)
    const { view, deciders } = shown
    const { meaning, steps } = explainKind(view.kind)
    return {
      title: nameKind(view.kind),
      current: 'tasks',
      body: (
        <>
          <Card title={t('discrepancyPage.meaning')}>
            <p>{meaning}</p>
            <h3>{t('discrepancyPage.steps')}</h3>
            <p>{steps}</p>
          </Card>
          <SidesCard shown={shown} />
          <FactsCard shown={shown} />
          {shown.external.length > 0 ? (
            <ExternalCard path={pathOf(shown)} shown={shown} named={c.req.query('external')} />
          ) : null}
          {row.resolvedAt === null ? <ResolveCard shown={shown} /> : null}
          <Annotations
            {...{ path: pathOf(shown), deciders, review: row }}
            isClosed={row.resolvedAt !== null}
          />
        </>
      ),
    }
  },
  actions: {
    resolution: {
      explain,
      async run({ ctx, access, of, fields }) {
        await resolveDiscrepancy(ctx, access, of, parseFields(ResolutionFields, fields))
        return { notice: 'discrepancyResolved' }
      },
    },
    external: {
      // A refund made elsewhere that cannot be decided so has not changed: its amount does not fit.
      explain: (error) =>
        error.code === 'not_decidable' && !error.changed
          ? t('discrepancyPage.refused.notFitting')
          : explain(error),
      async run({ ctx, access, of: { merchantCode, paymentId }, fields }) {
        const parsed = parseFields(ExternalFields, fields)
        const { externalId, state, externalOutcome: outcome, externalReason: reason } = parsed
        const external = await findExternalRefund(ctx, [merchantCode], externalId)
        if (external.paymentId !== paymentId) {
          throw new DomainError('external_refund_not_found', `No external refund ${externalId}`)
        }
        // What is read here is compared again within the commit.
        if (deriveExternalState(external) !== state) {
          const detail = 'it has changed since it was shown'
          throw new DomainError('not_decidable', detail, { changed: true })
        }
        const againstEvidence = parsed.againstEvidence === 'true'
        await resolveExternalRefund(ctx, external, { outcome, reason, againstEvidence }, access)
        return { notice: 'externalDecided' }
      },
    },
    ...annotations<DiscrepancyRow>({
      merchantOf: ({ merchantCode }) => merchantCode,
      note: ({ ctx, access, of }, text) => addNote(ctx, access, of, text),
      assign: ({ ctx, access, of }, name) => assignDiscrepancy(ctx, access, of, name),
    }),
  },
  async describe(ctx, c) {
    const { resolvedAt, resolvedBy: name, resolution } = await findPathDiscrepancy(ctx, c)
    if (resolvedAt === null) return []
    const reason = resolution ?? ''
    return [
      name === null
        ? t('decisions.happened.agreed')
        : t('decisions.happened.resolved', { name, reason }),
    ]
  },
})

function explainKind(kind: string) {
  const { meaning, steps } = Object.fromEntries(listTexts(`discrepancyHelp.${kind}`))
  return {
    meaning: meaning ?? t('discrepancyHelp.unknown.meaning'),
    steps: steps ?? t('discrepancyHelp.unknown.steps'),
  }
}

function SidesCard({ shown: { row, view } }: { shown: ShownDiscrepancyPage }) {
  return (
    <Card title={t('discrepancyPage.sides')}>
      <div class="sides">
        {(['ours', 'theirs'] as const).map((side) => (
          <div>
            <h3>{nameSource(view[side].source)}</h3>
            <p>{row[side]}</p>
          </div>
        ))}
      </div>
    </Card>
  )
}

function FactsCard({ shown: { view } }: { shown: ShownDiscrepancyPage }) {
  const { merchantCode, transactionId, paymentId, refundId } = view
  const refund =
    refundId !== null && can('refunds:read') ? (
      <a href={refundPagePath(merchantCode, refundId)}>{t('discrepancyPage.openRefund')}</a>
    ) : null
  const rows = [
    [t('field.state'), <State view={view} />],
    [t('field.severity'), t(`discrepancyPage.severities.${rateKind(view.kind)}`)],
    [t('field.account'), merchantCode],
    [
      t('field.transaction'),
      <a href={storyPath({ merchantCode, transactionId })}>{transactionId}</a>,
    ],
    [t('field.order'), view.orderId],
    [t('field.payment'), paymentId === null ? null : <Identifier>{paymentId}</Identifier>],
    [t('field.refund'), refund],
    [t('field.firstSeen'), <Time iso={view.firstSeenAt} />],
    [t('field.lastSeen'), <Time iso={view.lastSeenAt} />],
    [t('field.observed'), count('discrepancyPage.facts.times', view.times)],
  ] as const
  return (
    <Card title={t('discrepancyPage.about')}>
      <Facts rows={rows.filter(([, value]) => value !== null)} />
    </Card>
  )
}

function State({ view: { resolvedAt, resolution } }: { view: ShownDiscrepancyPage['view'] }) {
  if (resolvedAt === null) return <>{t('lists.open')}</>
  const how = resolution
    ? t('discrepancyPage.resolvedBy', { name: resolution.by, reason: resolution.reason })
    : t('discrepancyPage.agreed')
  return (
    <>
      {t('lists.resolved')} {how} <Time iso={resolvedAt} />
    </>
  )
}

function ResolveCard({ shown }: { shown: ShownDiscrepancyPage }) {
  const action = `${pathOf(shown)}/resolution`
  const { fields, problems } = useKept(action)
  const effect = describeEffect(shown)
  const hidden: Record<string, string> =
    shown.amount === undefined ? {} : { shownAmount: shown.amount }
  if (shown.mayResolve === 'another') {
    return (
      <Card title={t('discrepancyPage.resolve.title')} id="resolve">
        <p>{t('discrepancyPage.ownRefund.another')}</p>
      </Card>
    )
  }
  return (
    <Card title={t('discrepancyPage.resolve.title')} id="resolve">
      <p>{t('discrepancyPage.resolve.lead')}</p>
      {shown.mayResolve === 'self' ? (
        <p class="warn">{t('discrepancyPage.ownRefund.self')}</p>
      ) : null}
      {effect === undefined ? null : <p>{effect}</p>}
      {shown.view.refundId === null ? null : <p>{t('discrepancyPage.resolve.refundFirst')}</p>}
      <Form action={action} fields={hidden} stacked>
        <TextArea
          name="reason"
          label={t('field.reason')}
          value={fields.reason}
          problem={problems.reason}
          required
        />
        <button type="submit">{t('discrepancyPage.resolve.submit')}</button>
      </Form>
    </Card>
  )
}

/** What resolving does beyond closing the discrepancy. */
function describeEffect({ view, amount, currency }: ShownDiscrepancyPage): string | undefined {
  if (view.kind === 'payment_unreadable') return t('discrepancyPage.resolve.setsAside')
  if (amount === undefined) return undefined
  return compareAmounts(amount, '0') > 0
    ? t('discrepancyPage.resolve.enters', { amount: formatMoney(amount, currency) })
    : t('discrepancyPage.resolve.entersNothing')
}
