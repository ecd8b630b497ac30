import { REFUSALS } from '../../errors.ts'
import { nameProblem } from '../http/refusals.ts'

/** Builds the schema of each problem: the common members, its code and status, and its own. */
export function buildProblemSchemas() {
  return Object.fromEntries(
    Object.entries(REFUSALS).map(([code, { status, title, members = [] }]) => {
      const own = members.map(({ name, example }) => [name, { type: 'string', example }] as const)
      const required = members.filter(({ always }) => always).map(({ name }) => name)
      const schema = {
        description: title,
        allOf: [
          { $ref: '#/components/schemas/Problem' },
          {
            type: 'object',
            properties: {
              code: { const: code },
              status: { const: status },
              ...Object.fromEntries(own),
            },
            required: ['code', 'status', ...required],
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
    Object.entries(REFUSALS).map(([code, { status, title, members = [], example = {} }]) => {
      const { detail = title, error } = example
      const value = {
        type: `urn:ipn-processor:problem:${code}`,
        title,
        status,
        detail,
        code,
        requestId: 'a602ca54-48ed-44d6-9f6e-0dd2a8dff9f9',
        ...(error ? { errors: [error] } : {}),
        ...Object.fromEntries(members.map((member) => [member.name, member.example])),
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
