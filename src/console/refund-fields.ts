import { z } from 'zod'
import type { DomainError, RefusalCode } from '../errors.ts'
import { findDecimals, readWrittenAmount } from '../money.ts'
import { Receiver } from '../refunds/receiver.ts'
import { parseRefundAmount, Reason } from '../refunds/request-schema.ts'
import type { FormFields } from './env.ts'
import type { RefundSubject } from './refund-targets.tsx'
import type { PlainKey } from './texts/text.ts'
import { formatMoney, listTexts, t } from './view.ts'

/** Longer values are cut, so that the page stays small whatever was sent. */
const MAX_VALUE = 1_000

const Value = z
  .string()
  .catch('')
  .transform((text) => text.slice(0, MAX_VALUE).toWellFormed())

/** The fields of the form. Missing ones are empty. */
const Values = z.object({
  amountKind: Value,
  amount: Value,
  accountName: Value,
  accountNumber: Value,
  swiftCode: Value,
  reason: Value,
  reasonText: Value,
})

type RefundValues = Readonly<z.output<typeof Values>>

export const readValues = (form: FormFields): RefundValues => Values.parse(form)

export const RECEIVER_FIELDS = ['accountName', 'accountNumber', 'swiftCode'] as const

type FieldProblems = Partial<Record<keyof RefundValues, string>>

/** Without an amount, everything that is left is refunded. */
type PreparedRefund = {
  amount: string | undefined
  receiver: Receiver | undefined
  reason: string
}

export const OTHER_REASON = 'other'

/** The most characters of a remark. With a reason of 80 it fits into what a refund stores. */
export const MAX_REMARK = 400

type ParsedValues =
  | { refund: PreparedRefund; problems?: undefined }
  | { refund?: undefined; problems: FieldProblems }

/**
 * Parses the values like the API, but amounts as people write them: `37.000` is as much as `37,000` and `37.000 VND`.
 * @param asked what the payment needs, and the reasons that may be chosen
 */
export function parseValues(
  values: RefundValues,
  asked: Pick<RefundSubject, 'needsReceiver' | 'currency'> & { reasons: readonly string[] },
): ParsedValues {
  const problems: FieldProblems = {}
  const amount = parseAmount(values, asked.currency, problems)
  const receiver = asked.needsReceiver ? parseReceiver(values, problems) : undefined
  const reason = parseReason(values, asked.reasons, problems)
  if (reason === undefined || Object.keys(problems).length > 0) return { problems }
  return { refund: { amount, receiver, reason } }
}

/** Digits with separators, then a currency. Nothing else is taken for an amount of money to send. */
const WRITTEN = /^\s*\d[\d., \u00a0]*(?:([A-Za-z]{3})|([₫đĐ]))?\s*$/u

/** Either a thousand and more, or a number with three decimals. */
const EITHER = /^\s*\d{1,3}[.,]\d{3}\D*$/u

function parseAmount(
  { amountKind, amount }: RefundValues,
  currency: string | null,
  problems: FieldProblems,
): string | undefined {
  const typed = amount.trim()
  if (amountKind === 'part') {
    const [written = '', code, sign] = WRITTEN.exec(amount) ?? []
    const value = parseRefundAmount(readWrittenAmount(written) ?? '')
    const named = sign === undefined ? code?.toUpperCase() : 'VND'
    if (value === undefined) problems.amount = t('refundForm.problems.amount')
    else if (named !== undefined && currency !== null && named !== currency.toUpperCase()) {
      problems.amount = t('refundForm.problems.currency', { currency })
    } else if ((findDecimals(currency) ?? 0) > 2 && EITHER.test(amount)) {
      problems.amount = t('refundForm.problems.either')
    }
    return value
  }
  if (amountKind !== 'all') problems.amountKind = t('refundForm.problems.amountKind')
  // Whoever typed a part means it, although all is chosen beside it.
  else if (typed !== '') {
    problems.amountKind = t('refundForm.problems.bothKinds', { amount: typed })
  }
  return undefined
}

function parseReceiver(values: RefundValues, problems: FieldProblems): Receiver | undefined {
  const { accountName, accountNumber, swiftCode } = values
  const parsed = Receiver.safeParse({ accountName, accountNumber, swiftCode })
  const wrong = new Set(parsed.error?.issues.map(({ path }) => path[0]))
  for (const name of RECEIVER_FIELDS.filter((one) => wrong.has(one))) {
    const isMissing = values[name].trim() === ''
    problems[name] = isMissing
      ? t(`refundForm.problems.required.${name}`)
      : t('refundForm.problems.receiver')
  }
  return parsed.data
}

function parseReason(
  { reason, reasonText }: RefundValues,
  reasons: readonly string[],
  problems: FieldProblems,
): string | undefined {
  const remark = reasonText.trim()
  const isListed = reasons.includes(reason)
  if (!isListed && reason !== OTHER_REASON) {
    problems.reason = t('refundForm.problems.reason')
  } else if (!isListed && remark === '') {
    problems.reasonText = t('refundForm.problems.reasonText')
  } else {
    const parts = [...(isListed ? [reason] : []), remark].filter((part) => part !== '')
    const { data } = Reason.safeParse(parts.join(': '))
    if (data !== undefined && remark.length <= MAX_REMARK) return data
    problems.reasonText = t('refundForm.problems.reasonLong')
  }
  return undefined
}

/** A refusal in words: beside the fields that can fix it, or else above the form. */
type ExplainedRefusal = { problems?: FieldProblems; alert?: string | undefined }

/** @returns undefined if the refusal is not about the refund */
export function explainRefundRefusal(
  { code, extra, errors }: DomainError,
  subject: RefundSubject,
  { amountKind }: RefundValues,
): ExplainedRefusal | undefined {
  const { obstacle, warnings } = subject
  const show = (amount: string) => formatMoney(amount, subject.currency)
  // A problem with the amount stands beside it, unless the person chose all that is left.
  const besideAmount = (amount: string, alert: string | undefined) =>
    amountKind === 'part' ? { problems: { amount } } : { alert }
  // The page is read again after the refusal, so it shows the present reason.
  const unless = (isSaid: boolean, alert: PlainKey) => ({ alert: isSaid ? undefined : t(alert) })
  switch (code) {
    case 'exceeds_refundable': {
      const left = show(extra.refundableAmount ?? subject.left)
      const { alert } = unless(obstacle !== undefined, 'refundForm.alerts.nothingLeft')
      return besideAmount(t('refundForm.problems.tooMuch', { left }), alert)
    }
    case 'refund_cap_exceeded': {
      const { leftToday } = extra
      const cap =
        leftToday === undefined
          ? t('refundForm.problems.cap')
          : t('refundForm.problems.capToday', { leftToday: show(leftToday) })
      return besideAmount(cap, cap)
    }
    case 'receiver_required':
      return { problems: Object.fromEntries(listTexts('refundForm.problems.required')) }
    case 'invalid_request':
      return explainFields(errors, subject)
    case 'held':
      return unless(warnings.length > 0, 'refundForm.alerts.heldNow')
    case 'payment_not_refundable':
      return unless(obstacle !== undefined, 'refundForm.alerts.notNow')
    default: {
      const alert = ABOVE[code]
      return alert && { alert: t(alert) }
    }
  }
}

function explainFields(
  errors: DomainError['errors'],
  { currency }: RefundSubject,
): ExplainedRefusal | undefined {
  const named = new Set(errors.map(({ path }) => path))
  const problems: FieldProblems = {}
  for (const name of RECEIVER_FIELDS.filter((one) => named.has(`receiver.${one}`))) {
    problems[name] = t(`refundForm.problems.strict.${name}`)
  }
  if (named.has('amount')) {
    problems.amount =
      currency === null
        ? t('refundForm.problems.amount')
        : t('refundForm.problems.decimals', { currency })
  }
  return Object.keys(problems).length > 0 ? { problems } : undefined
}

const ABOVE: Partial<Record<RefusalCode, PlainKey>> = {
  refunds_disabled: 'refundForm.alerts.disabled',
  merchant_not_found: 'refundForm.alerts.accountMissing',
  idempotency_key_reused: 'refundForm.alerts.keyReused',
  too_many_open_refunds: 'refundForm.alerts.tooManyOpen',
}
