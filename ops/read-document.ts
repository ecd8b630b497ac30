import { createApp } from '../src/app.ts'
import { readConfig } from '../src/config/config.ts'

/** What a context has beside its configuration: whatever is read from it or called, it is this again. */
const ANYTHING: unknown = new Proxy(() => {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => '' : ANYTHING),
  apply: () => ANYTHING,
})

/**
 * A context for an application that only declares its routes.
 * @returns a context whose members do nothing: a handler that runs with it does not do its work
 */
function createDeclaringContext(): Parameters<typeof createApp>[0] {
  const known: Record<PropertyKey, unknown> = {
    config: readConfig({}),
    referenceExamples: new Map(),
  }
  const context = new Proxy(known, { get: (target, name) => target[name] ?? ANYTHING })
  return context as unknown as ReturnType<typeof createDeclaringContext>
}

/** Returns the API's OpenAPI document, as `/openapi.json` serves it, without a database or a server. */
export async function readDocument(): Promise<string> {
  const app = createApp(createDeclaringContext())
  const response = await app.request('/openapi.json', {}, { incoming: { socket: {}, headers: {} } })
  const text = await response.text()
  if (!response.ok) throw new Error(`/openapi.json was answered ${response.status}: ${text}`)
  return text
}
