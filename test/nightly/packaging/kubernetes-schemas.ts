import { createRequire } from 'node:module'
import { z } from 'zod'

const require = createRequire(import.meta.url)

const TypeMeta = z.looseObject({ apiVersion: z.string(), kind: z.string() })
/** A class of `kubernetes-models`: `validate` throws with everything that the schema of the kind refuses. */
const Model = z.custom<{ prototype: { validate: () => void } }>((it) => typeof it === 'function')

/**
 * Returns what is wrong with a manifest: what Kubernetes's own schema of its kind refuses, and fields that the schema does
 * not have, which `kubectl apply` refuses as well.
 */
export function findSchemaFaults(manifest: object): string[] {
  const { apiVersion, kind } = TypeMeta.parse(manifest)
  const model = findModel(apiVersion, kind)
  if (!model) return [`there is no ${apiVersion} ${kind}`]
  const unread = new Set<string>()
  try {
    Reflect.apply(model.prototype.validate, watchReads(manifest, '', unread), [])
  } catch (error) {
    return [`${kind}: ${error instanceof Error ? error.message : String(error)}`]
  }
  return [...unread].map((path) => `${kind}: the schema has no ${path}`)
}

function findModel(apiVersion: string, kind: string): z.infer<typeof Model> | undefined {
  const module: unknown = require(`kubernetes-models/${apiVersion}`)
  const found = z.record(z.string(), z.unknown()).parse(module)[kind]
  return found === undefined ? undefined : Model.parse(found)
}

/**
 * Wraps a manifest so that `unread` keeps the fields that nobody has read. The compiled schemas read every field that they
 * know, list the keys where any is allowed, and never look at others.
 */
function watchReads<Part extends object>(part: Part, path: string, unread: Set<string>): Part {
  const isList = Array.isArray(part)
  const pathOf = (key: string) => `${path}/${key}`
  if (!isList) for (const key of Object.keys(part)) unread.add(pathOf(key))
  const children = new Map<string, object>()
  return new Proxy(part, {
    get(target, key, receiver) {
      const value: unknown = Reflect.get(target, key, receiver)
      if (typeof key !== 'string') return value
      unread.delete(pathOf(key))
      if (typeof value !== 'object' || value === null) return value
      const child = children.get(key) ?? watchReads(value, pathOf(key), unread)
      children.set(key, child)
      return child
    },
    ownKeys(target) {
      for (const key of Object.keys(target)) unread.delete(pathOf(key))
      return Reflect.ownKeys(target)
    },
  })
}
