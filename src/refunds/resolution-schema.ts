import { z } from '@hono/zod-openapi'
import { Time } from '../http/fields.ts'

/** The beginning of the cause of every change that a person decided, and what the actor follows. */
export const DECIDED = 'resolved'
export const DECIDED_CAUSE = /^resolved (with API key|by) /

/** A person's decision, as the API shows it. */
export const Resolution = z
  .strictObject({
    outcome: z.string(),
    reason: z.string(),
    by: z.string().openapi({ description: 'The name of the API key, or of the person' }),
    againstEvidence: z
      .string()
      .nullable()
      .openapi({ description: 'The evidence it contradicts, if any' }),
    decidedAt: Time,
  })
  .openapi('Resolution', {
    example: {
      outcome: 'succeeded',
      reason: 'gateway support, ticket 4711: paid out',
      by: 'operations',
      againstEvidence: null,
      decidedAt: '2026-11-24T09:12:00.000Z',
    },
  })
