import type { DomainError, RefusalCode } from '../errors.ts'
import { formatMoney } from './format-money.ts'
import { type FieldProblems, RECEIVER_FIELDS, type RefundValues } from './refund-fields.ts'
import type { RefundSubject } from './refund-targets.tsx'
import type { PlainKey } from './texts/text.ts'
import { listTexts, t } from './view.ts'

/** A refusal in words: beside the fields that can mend it, or else above the form. */
export type ExplainedRefusal = { problems: FieldProblems; alert?: string | undefined }

type Refused = { subject: RefundSubject; values: RefundValues }

/**
 * Explains why a refund was refused.
 * @returns undefined for a refusal that is not about the refund
 */
export function explainRefundRefusal(
  error: DomainError,
  { subject, values }: Refused,
): ExplainedRefusal | undefined {
  const show = (amount: string) => formatMoney(amount, subject.currency)
  const left = show(error.extra.refundableAmount ?? subject.left)
  switch (error.code) {
    case 'exceeds_refundable':
      return besideAmount(values, {
        problem: t('refundForm.problems.tooMuch', { left }),
        alert: subject.obstacle === undefined ? t('refundForm.alerts.nothingLeft') : undefined,
      })
    case 'refund_cap_exceeded': {
      const { leftToday } = error.extra
      const cap =
        leftToday === undefined
          ? t('refundForm.problems.cap')
          : t('refundForm.problems.capToday', { leftToday: show(leftToday) })
      return besideAmount(values, { problem: cap, alert: cap })
    }
    case 'receiver_required':
      return { problems: Object.fromEntries(listTexts('refundForm.problems.required')) }
    case 'invalid_request':
      return explainFields(error, subject)
    default:
      return explainAbove(error.code, subject)
  }
}

/** What concerns the amount stands beside it, unless the person chose all that is left. */
function besideAmount(
  { amountKind }: RefundValues,
  { problem, alert }: { problem: string; alert: string | undefined },
): ExplainedRefusal {
  if (amountKind === 'part') return { problems: { amount: problem }, alert: undefined }
  return { problems: {}, alert }
}

function explainFields(
  { errors }: DomainError,
  { currency }: RefundSubject,
): ExplainedRefusal | undefined {
  const named = new Set(errors.map(({ path }) => path))
  const receiver = RECEIVER_FIELDS.filter((name) => named.has(`receiver.${name}`))
  const problems: FieldProblems = {
    ...Object.fromEntries(receiver.map((name) => [name, t(`refundForm.problems.strict.${name}`)])),
    ...(named.has('amount')
      ? {
          amount:
            currency === null
              ? t('refundForm.problems.amount')
              : t('refundForm.problems.decimals', { currency }),
        }
      : {}),
  }
  return Object.keys(problems).length > 0 ? { problems } : undefined
}

const ABOVE: Partial<Record<RefusalCode, PlainKey>> = {
  refunds_disabled: 'refundForm.alerts.disabled',
  merchant_not_found: 'refundForm.alerts.accountMissing',
  idempotency_key_reused: 'refundForm.alerts.keyReused',
  too_many_open_refunds: 'refundForm.alerts.tooManyOpen',
}

/** The page is read anew after the refusal, so that the reason it shows is the present one. */
function explainAbove(
  code: RefusalCode,
  { obstacle, warnings }: RefundSubject,
): ExplainedRefusal | undefined {
  if (code === 'held')
    return { problems: {}, alert: warnings.length > 0 ? undefined : t('refundForm.alerts.heldNow') }
  if (code === 'payment_not_refundable') {
    return {
      problems: {},
      alert: obstacle === undefined ? t('refundForm.alerts.notNow') : undefined,
    }
  }
  const alert = ABOVE[code]
  return alert === undefined ? undefined : { problems: {}, alert: t(alert) }
}
