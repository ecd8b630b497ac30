import { OpenAPIHono, type z } from '@hono/zod-openapi'
import { DomainError } from '../../errors.ts'
import type { HttpEnv } from './env.ts'

/**
 * Creates a router whose routes declare their input and responses. Input that does not match is refused
 * with `invalid_request`, with an error for each field.
 */
export function createRouter() {
  return new OpenAPIHono<HttpEnv>({
    defaultHook: (result) => {
      if (result.success) return
      const errors = result.error.issues.flatMap((issue) => {
        const message = explainIssue(issue)
        const names = issue.code === 'unrecognized_keys' ? issue.keys : [undefined]
        return names.map((name) => ({
          path: [...issue.path, ...(name === undefined ? [] : [name])].join('.') || 'body',
          message: name === undefined ? message : 'is not known here',
        }))
      })
      const detail = errors.map(({ path, message }) => `${path}: ${message}`).join('; ')
      throw new DomainError('invalid_request', detail, { errors })
    },
  })
}

/** Phrases an issue so that it can follow the field's name; the library's messages are sentences of their own. */
function explainIssue(issue: z.core.$ZodIssue): string {
  // A schema's own message is more precise than the issue's code.
  if (!issue.message.startsWith('Invalid ')) return issue.message
  if (issue.code === 'invalid_type') {
    const isMissing = issue.message.endsWith('received undefined')
    return isMissing ? 'is missing' : `must be of type ${issue.expected}`
  }
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.map(String).join(', ')}`
  return issue.message
}
