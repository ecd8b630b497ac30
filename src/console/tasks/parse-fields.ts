import { z } from 'zod'
import { OUTCOMES } from '../../decisions/obstacles.ts'
import { Reason } from '../../refunds/request-schema.ts'
import type { FormFields } from '../env.ts'
import { nameIn } from '../view.ts'

/** Line breaks of a text area become spaces: reasons are one line. */
const OneLine = z.string().transform((text) => text.replaceAll(/\s+/g, ' ').trim())

/** A reason that may be left out. */
const OptionalReason = z
  .string()
  .optional()
  .pipe(OneLine.prefault(''))
  .refine((text) => Reason.safeParse(text).success, 'tooLong')
  .transform((text) => (text === '' ? undefined : text))

/** A text that has to be given. */
const requireText = (missing: string) =>
  z
    .string()
    .optional()
    .pipe(OneLine.prefault(''))
    .refine((text) => text !== '', { message: missing, abort: true })
    .refine((text) => Reason.safeParse(text).success, 'tooLong')

/** The version that the page was shown for; anything else counts as another version. */
const Version = z.string().catch('')

export const ApprovalFields = z.object({
  decision: z.enum(['approve', 'decline']),
  reason: OptionalReason,
  version: Version,
})

export const ResolutionFields = z.object({
  outcome: z.enum(OUTCOMES, 'outcome'),
  reason: requireText('reason'),
  againstEvidence: z.string().optional(),
  version: Version,
})

export const CancellationFields = z.object({
  cancelReason: requireText('reason'),
  version: Version,
})

export const NoteFields = z.object({ text: requireText('text') })

export const DiscrepancyFields = z.object({
  reason: requireText('reason'),
  shownAmount: z
    .string()
    .regex(/^-?\d{1,18}(\.\d{1,4})?$/)
    .optional()
    .catch(undefined),
})

export const ExternalFields = z.object({
  externalId: z.uuid(),
  state: z.string().catch(''),
  externalOutcome: z.enum(['matched', 'part_of_first_sight', 'never_happened'], 'outcome'),
  externalReason: requireText('reason'),
  againstEvidence: z.string().optional(),
})

type Parsed<T> = { data: T } | { problems: Record<string, string> }

/** The messages of the schemas are keys of the problems in words. Parses the fields of a form: the values, or the first problem of each field. */
export function parseFields<T>(schema: z.ZodType<T>, fields: FormFields): Parsed<T> {
  const parsed = schema.safeParse(fields)
  if (parsed.success) return { data: parsed.data }
  const found: Record<string, string> = {}
  for (const { path, message } of parsed.error.issues)
    found[String(path[0])] ??= nameIn('decisions.problems', message)
  return { problems: found }
}
