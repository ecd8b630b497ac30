import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { DETAIL, ENVELOPE, ITEM, PAGE } from '../../support/card-specification.ts'
import { startTestService } from '../../support/service.ts'
import { useStarted, useTestDatabase } from '../../support/use-started.ts'

const Schema = z.looseObject({
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  anyOf: z.array(z.unknown()).optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  items: z.unknown().optional(),
  description: z.string().optional(),
})
type Schema = z.infer<typeof Schema>

const database = useTestDatabase()
const service = useStarted(
  () => startTestService(database, 'http://127.0.0.1:1', { settings: { ROLE: 'web' } }),
  (started) => started.stop(),
)
let schemas: Record<string, unknown>
beforeAll(async () => {
  const document = await (await fetch(`${service.url}/openapi.json`)).json()
  const Document = z.object({
    components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
  })
  schemas = Document.parse(document).components.schemas
})

/** Follows references, and the one alternative that has members. */
function resolve(schema: unknown): Schema {
  const one = Schema.parse(schema)
  if (one.$ref) return resolve(schemas[one.$ref.replace('#/components/schemas/', '')])
  return one
}

function find(name: string, path: string): Schema {
  let at = resolve({ $ref: `#/components/schemas/${name}` })
  for (const part of path.split('.')) at = resolve(at.properties?.[part])
  return at
}

const listTypes = ({ type = [], anyOf = [] }: Schema): string[] => [
  ...[type].flat(),
  ...anyOf.flatMap((one) => listTypes(resolve(one))),
]

describe.each([
  ['CardEnvelope', '2.1', ENVELOPE],
  ['CardListEnvelope', '2.1', ENVELOPE],
  ['VirtualCard', '2.2', DETAIL],
  ['ListedCard', '2.3', ITEM],
])('the document, in %s (specification %s)', (name, _, table) => {
  it.each(table)('has $name with its type and a description', ({ name: path, type }) => {
    const found = find(name, path)
    expect(listTypes(found)).toContain(type)
    if (path !== 'data') expect(found.description).toMatch(/\w/)
  })

  it('has no member that the specification does not have', () => {
    const listPaths = (schema: Schema, above: string): string[] =>
      Object.entries(schema.properties ?? {}).flatMap(([member, below]) => {
        const path = above + member
        return /^card(Data|Policy)$/.test(path) ? listPaths(resolve(below), `${path}.`) : [path]
      })
    const declared = listPaths(resolve({ $ref: `#/components/schemas/${name}` }), '')
    expect(declared.toSorted()).toEqual(table.map((member) => member.name).toSorted())
  })
})

it('the document, in the data of a list, has the members of specification 2.3', () => {
  const data = find('CardListEnvelope', 'data')
  expect(Object.keys(data.properties ?? {})).toEqual(PAGE.map(({ name }) => name))
  expect(find('CardListEnvelope', 'data.docs').items).toEqual({
    $ref: '#/components/schemas/ListedCard',
  })
})
