import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { z } from 'zod'

/** One response of the service, as sent. */
export type Answer = {
  method: string
  /** Path and query as requested. */
  target: string
  status: number
  headers: Readonly<Record<string, string>>
  body: string
}

/** Returns how a response violates the API's document; undefined when it conforms. */
export type Check = (answer: Answer) => string | undefined

const Content = z.record(z.string(), z.looseObject({ schema: z.unknown().optional() }))
const Response = z.object({
  headers: z.record(z.string(), z.object({ $ref: z.string() })).default({}),
  content: Content.default({}),
})
const Operation = z.object({ responses: z.record(z.string(), Response) })
const Document = z.looseObject({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.looseObject({
    headers: z.record(z.string(), z.object({ required: z.boolean().default(false) })),
  }),
})

const escapeName = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1')

/** Resolves dot segments, as the framework does. `/ipn`, which is served before it, is only that path as it is written. */
function readPath(target: string): string {
  const address = target.startsWith('/') ? `http://localhost${target}` : target
  const path = URL.canParse(address) ? new URL(address).pathname : target
  return path === '/ipn' && target.split('?')[0] !== path ? target : path
}

/**
 * Prepares the check of responses against a document. Each schema is compiled once.
 * @param isServed whether a path of the document is served at all
 */
export function prepareCheck(text: string, isServed: (path: string) => boolean): Check {
  const json: object = JSON.parse(text)
  const { paths, components } = Document.parse(json)
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false })
  addFormats.default(ajv)
  ajv.addSchema(json, 'api')
  const validators = new Map<string, ValidateFunction>()
  const served = Object.keys(paths).filter(isServed)
  const patterns = served.map((path) => ({
    path,
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  }))

  function validate(pointer: string, value: unknown): string | undefined {
    const known = validators.get(pointer) ?? ajv.compile({ $ref: `api#${pointer}` })
    validators.set(pointer, known)
    return known(value) ? undefined : ajv.errorsText(known.errors, { separator: '; ' })
  }

  function validateBody(pointer: string, { body }: Answer): string | undefined {
    try {
      return validate(pointer, JSON.parse(body))
    } catch (error) {
      return String(error)
    }
  }

  function checkResponse(answer: Answer, pointer: string, declared: z.infer<typeof Response>) {
    const missing = Object.entries(declared.headers).filter(
      ([name, { $ref }]) =>
        components.headers[$ref.replace('#/components/headers/', '')]?.required &&
        !(name.toLowerCase() in answer.headers),
    )
    if (missing.length > 0) return `has no ${missing.map(([name]) => name).join(', ')}`
    const undeclared = Object.keys(components.headers).filter(
      (name) => name.toLowerCase() in answer.headers && !Object.hasOwn(declared.headers, name),
    )
    if (undeclared.length > 0) return `has ${undeclared.join(', ')}, which is not in the document`
    const type = answer.headers['content-type']?.split(';')[0] ?? ''
    if (!Object.hasOwn(declared.content, type)) {
      const bare = Object.keys(declared.content).length === 0 && answer.body === ''
      return bare ? undefined : `is ${type || 'without a type'}, which is not in the document`
    }
    if (answer.method === 'HEAD' || !/json$/.test(type)) return undefined
    return validateBody(`${pointer}/content/${escapeName(type)}/schema`, answer)
  }

  /** Checks responses outside all operations: to another method, or to a path that is not served. */
  function checkOther(answer: Answer): string | undefined {
    if (answer.status < 400) return 'is a success that the document does not know'
    if (answer.status === 405 && !answer.headers.allow) return 'has no Allow'
    const type = answer.headers['content-type']
    const own = answer.target.split('?')[0] === '/ipn' && type === 'application/json'
    if (!own && type !== 'application/problem+json') return `is ${type}`
    if (answer.method === 'HEAD') return undefined
    return validateBody(`/components/schemas/${own ? 'NotReceived' : 'Problem'}`, answer)
  }

  return (answer) => {
    const asked = readPath(answer.target)
    const isPage = answer.headers['content-type'] !== 'application/problem+json'
    if (/^\/((console|docs)(\/.*)?)?$/.test(asked) && isPage) return checkPage(answer)
    const { path = '' } = patterns.find(({ pattern }) => pattern.test(asked)) ?? {}
    const method = answer.method === 'HEAD' ? 'get' : answer.method.toLowerCase()
    const operation = paths[path]?.[method]
    if (!operation) return checkOther(answer)
    const declared = operation.responses[answer.status]
    if (!declared) return 'has a status that is not in the document'
    return checkResponse(
      answer,
      `/paths/${escapeName(path)}/${method}/responses/${answer.status}`,
      declared,
    )
  }
}

const EXCEL = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'

/** Checks what the console and the reference answer: no document describes pages, but they have rules of their own. */
function checkPage({ status, headers, method, target }: Answer): string | undefined {
  // An open page asks whether it has changed.
  if (status === 304) return undefined
  if (status >= 300 && status < 400) {
    return headers.location?.startsWith('/console') ? undefined : `leads to ${headers.location}`
  }
  if (status === 405 && !headers.allow) return 'has no Allow'
  const type = headers['content-type']?.split(';')[0] ?? ''
  if (['text/css', 'text/javascript', 'image/png'].includes(type)) return undefined
  if (type === 'text/csv' && target.includes('format=csv')) return undefined
  if (type === EXCEL && target.includes('format=xlsx')) return undefined
  if (type !== 'text/html' && method !== 'HEAD') return `is ${type || 'without a type'}`
  const policy = headers['content-security-policy'] ?? ''
  const isStrict = /form-action '(self|none)'/.test(policy) && !policy.includes('unsafe')
  return isStrict ? undefined : `has the policy ${policy}`
}
