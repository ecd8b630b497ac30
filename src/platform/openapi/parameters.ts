import { z } from '@hono/zod-openapi'

/** What a parameter is, in a sentence of its own, and an example that the reference fills in. */
export type ParameterText = { description: string; example?: string }

/** Texts by the name of a parameter, or by `<operationId>.<name>` where it means something else. */
export type ParameterTable = Readonly<Record<string, ParameterText>>

const Operation = z.looseObject({
  operationId: z.string().optional(),
  parameters: z.array(z.looseObject({ name: z.string(), in: z.string() })).optional(),
})
const Paths = z.record(z.string(), z.record(z.string(), Operation))

/**
 * Gives the parameters of all operations their own texts: the same schema, such as that of an id, serves many of them.
 * @param paths of an OpenAPI document
 * @param examples take the place of those in the table, by the same names
 */
export function describeParameters(
  paths: object,
  table: ParameterTable,
  examples: ReadonlyMap<string, string>,
): object {
  return mapValues(Paths.parse(paths), (item) =>
    mapValues(item, (operation) => {
      if (!operation.parameters) return operation
      const parameters = operation.parameters.map((parameter) => {
        const names = [`${operation.operationId}.${parameter.name}`, parameter.name]
        const text = names.flatMap((name) => table[name] ?? []).at(0)
        if (!text) return parameter
        const given = names.flatMap((name) => examples.get(name) ?? []).at(0)
        const isFilter = parameter.in === 'query'
        const example = isFilter || text.example === undefined ? undefined : (given ?? text.example)
        const { description } = text
        return { ...parameter, description, ...(example === undefined ? {} : { example }) }
      })
      return { ...operation, parameters }
    }),
  )
}

function mapValues<T, U>(values: Readonly<Record<string, T>>, map: (value: T) => U) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]))
}
