import { LosslessNumber, parse } from 'lossless-json'
import { z } from 'zod'
import { compareAmounts, parseAmount } from '../money.ts'

/** A JSON number. Control bodies are parsed by lossless-json, which keeps each number as text. */
export const jsonNumber = z
  .instanceof(LosslessNumber, { error: 'expected a number' })
  .transform(({ value }) => Number(value))

/** A whole number from 0 to 86,400,000, one day in milliseconds. */
export const countOrMs = jsonNumber.pipe(z.number().int().min(0).max(86_400_000))

/** A response code that means failure (specification 7: any but 0). */
export const failureCode = jsonNumber.pipe(
  z
    .number()
    .int()
    .refine((code) => code !== 0, 'a failure has a code other than 0'),
)

/** An amount as decimal text or JSON number; its digits are kept. */
export const decimalAmount = z
  .union([z.string(), z.instanceof(LosslessNumber)], { error: 'expected an amount' })
  .transform((given, context) => {
    const amount = parseAmount(String(given))
    if (amount !== undefined) return amount
    context.addIssue({
      code: 'custom',
      message: 'expected an amount: at most 18 digits before and 4 after the point',
    })
    return z.NEVER
  })

/** An amount above zero. */
export const positiveAmount = decimalAmount.refine((amount) => compareAmounts(amount, '0') > 0, {
  message: 'expected an amount above 0',
})

/** A refusal of a control request, answered with its status and `{path, message}`. */
export class ControlError extends Error {
  readonly status: 404 | 409 | 422
  readonly path: string
  constructor(status: 404 | 409 | 422, path: string, message: string) {
    super(message)
    this.name = 'ControlError'
    this.status = status
    this.path = path
  }
}

/**
 * Reads the body of a control request; an empty body counts as `{}`.
 * @throws ControlError 422 naming the first invalid member
 */
export function readInput<T>(schema: z.ZodType<T>, text: string): T {
  const result = schema.safeParse(parseJson(text))
  if (result.success) return result.data
  const issue = result.error.issues[0]
  const unknownMember = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : []
  const path = [...(issue?.path ?? []), ...unknownMember].map(String).join('.')
  throw new ControlError(422, path, issue?.message ?? 'invalid body')
}

function parseJson(text: string): unknown {
  try {
    return parse(text.trim() === '' ? '{}' : text)
  } catch {
    throw new ControlError(422, '', 'the body is not JSON')
  }
}
