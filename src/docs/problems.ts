import type { FieldError, RefusalCode } from '../errors.ts'
import { PROBLEMS } from '../http/errors.ts'
import { nameProblem } from '../http/refusals.ts'

/** What an example says, where its title is not enough. */
const DETAILS: Record<string, string | undefined> = {
  exceeds_refundable: 'Only 5000 is left to refund',
  invalid_request: 'limit: must be a whole number from 1 to 200',
  rate_limited: 'This key may ask 600 times a minute',
  refund_cap_exceeded: 'This key may refund 250000 more today (UTC), of 2000000 a day',
  scope_missing: 'This key has no scope refunds:write',
  transaction_not_found: 'No transaction 240830080146NDTISR',
} satisfies Partial<Record<RefusalCode, string>>

const ERRORS: Record<string, FieldError | undefined> = {
  invalid_request: { path: 'limit', message: 'must be a whole number from 1 to 200' },
  receiver_required: { path: 'receiver', message: 'is needed, because the payment was made by QR' },
} satisfies Partial<Record<RefusalCode, FieldError>>

/** The schema of each problem: the common members, its code and status, and what it alone carries. */
export function describeProblems() {
  return Object.fromEntries(
    Object.entries(PROBLEMS).map(([code, { status, title, member }]) => {
      const own = member ? { [member.name]: { type: 'string', example: member.example } } : {}
      const schema = {
        description: title,
        allOf: [
          { $ref: '#/components/schemas/Problem' },
          {
            type: 'object',
            properties: { code: { const: code }, status: { const: status }, ...own },
            required: ['code', 'status', ...(member?.always ? [member.name] : [])],
          },
        ],
        unevaluatedProperties: false,
      }
      return [nameProblem(code), schema]
    }),
  )
}

/** An example of each problem. */
export function exemplifyProblems() {
  return Object.fromEntries(
    Object.entries(PROBLEMS).map(([code, { status, title, member }]) => {
      const error = ERRORS[code]
      const value = {
        type: `urn:ipn-processor:problem:${code}`,
        title,
        status,
        detail: DETAILS[code] ?? title,
        code,
        requestId: 'a602ca54-48ed-44d6-9f6e-0dd2a8dff9f9',
        ...(error ? { errors: [error] } : {}),
        ...(member ? { [member.name]: member.example } : {}),
      }
      return [code, { summary: title, value }]
    }),
  )
}

/** All of them as a table for people, in Markdown. */
export function tabulateProblems(): string {
  const rows = Object.entries(PROBLEMS).map(
    ([code, { status, title }]) => `| \`${code}\` | ${status} | ${title} |`,
  )
  return ['| code | status | |', '| --- | --- | --- |', ...rows].join('\n')
}
