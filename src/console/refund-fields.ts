import type { DomainError, RefusalCode } from '../errors.ts'
import { readWrittenAmount } from '../money.ts'
import { Receiver } from '../refunds/receiver.ts'
import { parseRefundAmount, Reason } from '../refunds/request-schema.ts'
import type { FormFields } from './env.ts'
import type { RefundSubject } from './refund-targets.tsx'
import type { PlainKey } from './texts/text.ts'
import { formatMoney, listTexts, t } from './view.ts'

/** The fields of the form, in the order of the page. */
export const NAMES = [
  'amountKind',
  'amount',
  'accountName',
  'accountNumber',
  'swiftCode',
  'reason',
  'reasonText',
] as const

/** The members of a receiver, as fields. */
export const RECEIVER_FIELDS = ['accountName', 'accountNumber', 'swiftCode'] as const

export type FieldName = (typeof NAMES)[number]

/** What a person has typed and chosen. */
export type RefundValues = Readonly<Record<FieldName, string>>

/** What is wrong with it, by field. */
export type FieldProblems = Readonly<Partial<Record<FieldName, string>>>

/** A refund as it is requested; an amount left out stands for all that is left. */
export type PreparedRefund = {
  amount: string | undefined
  receiver: Receiver | undefined
  reason: string
}

/** The option that stands for a reason which is not in the list. */
export const OTHER_REASON = 'other'

/** The most characters of a remark: with a reason of 80 it fits into what a refund stores. */
export const MAX_REMARK = 400

/** Longer values are cut, so that a page stays small whatever was sent. */
const MAX_VALUE = 1_000

/** Takes the values out of a form; missing ones are empty. */
export function readValues(form: FormFields): RefundValues {
  const read = (name: FieldName) => (form[name] ?? '').slice(0, MAX_VALUE).toWellFormed()
  return {
    amountKind: read('amountKind'),
    amount: read('amount'),
    accountName: read('accountName'),
    accountNumber: read('accountNumber'),
    swiftCode: read('swiftCode'),
    reason: read('reason'),
    reasonText: read('reasonText'),
  }
}

export type ParsedValues =
  | { refund: PreparedRefund; problems?: undefined }
  | { refund?: undefined; problems: FieldProblems }

/**
 * Parses the values as the API would, and amounts as people write them: `37,000`, `1.110.000 VND`.
 * @param asked whether the payment needs a receiver, and the reasons that may be chosen
 */
export function parseValues(
  values: RefundValues,
  asked: { needsReceiver: boolean; reasons: readonly string[] },
): ParsedValues {
  const amount = parseAmount(values)
  const receiver = asked.needsReceiver ? parseReceiver(values) : { value: undefined }
  const reason = parseReason(values, asked.reasons)
  const problems = { ...amount.problems, ...receiver.problems, ...reason.problems }
  if (reason.value === undefined || Object.keys(problems).length > 0) return { problems }
  return { refund: { amount: amount.value, receiver: receiver.value, reason: reason.value } }
}

type Parsed<T> = { value?: T | undefined; problems?: FieldProblems }

/** Digits with separators, and a currency behind them: nothing else stands in an amount that money is sent by. */
const WRITTEN = /^\s*\d[\d., \u00a0]*(?:[A-Z]{3}|₫|đ)?\s*$/u

function parseAmount({ amountKind, amount }: RefundValues): Parsed<string> {
  const typed = amount.trim()
  // A part that was typed is meant, whatever is chosen beside it.
  if (amountKind === 'all' && typed !== '') {
    return { problems: { amountKind: t('refundForm.problems.bothKinds', { amount: typed }) } }
  }
  if (amountKind === 'all') return {}
  if (amountKind !== 'part')
    return { problems: { amountKind: t('refundForm.problems.amountKind') } }
  const written = WRITTEN.test(amount) ? readWrittenAmount(amount) : undefined
  const value = parseRefundAmount(amount) ?? parseRefundAmount(written ?? '')
  return value === undefined ? { problems: { amount: t('refundForm.problems.amount') } } : { value }
}

function parseReceiver(values: RefundValues): Parsed<Receiver> {
  const { accountName, accountNumber, swiftCode } = values
  const parsed = Receiver.safeParse({ accountName, accountNumber, swiftCode })
  if (parsed.success) return { value: parsed.data }
  const named = new Set(parsed.error.issues.map(({ path }) => path[0]))
  const problems = RECEIVER_FIELDS.filter((name) => named.has(name)).map((name) => [
    name,
    values[name].trim() === ''
      ? t(`refundForm.problems.required.${name}`)
      : t('refundForm.problems.receiver'),
  ])
  return { problems: Object.fromEntries(problems) }
}

function parseReason({ reason, reasonText }: RefundValues, reasons: readonly string[]) {
  const remark = reasonText.trim()
  const isListed = reasons.includes(reason)
  if (!isListed && reason !== OTHER_REASON) {
    return { problems: { reason: t('refundForm.problems.reason') } }
  }
  if (!isListed && remark === '') {
    return { problems: { reasonText: t('refundForm.problems.reasonText') } }
  }
  const text = [...(isListed ? [reason] : []), ...(remark === '' ? [] : [remark])].join(': ')
  const parsed = Reason.safeParse(text)
  return parsed.success && remark.length <= MAX_REMARK
    ? { value: parsed.data }
    : { problems: { reasonText: t('refundForm.problems.reasonLong') } }
}

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
