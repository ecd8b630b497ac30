import { REFUSALS } from '../../errors.ts'
import { nameProblem } from '../http/refusals.ts'

/** Builds the schema of each problem: the common members, its code and status, and its own member. */
export function buildProblemSchemas() {
  return Object.fromEntries(
    Object.entries(REFUSALS).map(([code, { status, title, member }]) => {
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

/** Builds an example of each problem. */
export function buildProblemExamples() {
  return Object.fromEntries(
    Object.entries(REFUSALS).map(([code, { status, title, member, example = {} }]) => {
      const { detail = title, error } = example
      const value = {
        type: `urn:ipn-processor:problem:${code}`,
        title,
        status,
        detail,
        code,
        requestId: 'a602ca54-48ed-44d6-9f6e-0dd2a8dff9f9',
        ...(error ? { errors: [error] } : {}),
        ...(member ? { [member.name]: member.example } : {}),
      }
      return [code, { summary: title, value }]
    }),
  )
}

/** Formats all problems as a Markdown table. */
export function formatProblemTable(): string {
  const rows = Object.entries(REFUSALS).map(
    ([code, { status, title }]) => `| \`${code}\` | ${status} | ${title} |`,
  )
  return ['| code | status | |', '| --- | --- | --- |', ...rows].join('\n')
}
