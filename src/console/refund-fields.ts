import { readWrittenAmount } from '../money.ts'
import { Receiver } from '../refunds/receiver.ts'
import { parseRefundAmount, Reason } from '../refunds/request-schema.ts'
import type { FormFields } from './env.ts'
import { t } from './view.ts'

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
