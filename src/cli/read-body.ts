import { parseFormParams, parseJsonParams } from '../gateway/parse-params.ts'
import type { WireParams } from '../gateway/signature.ts'
import { UsageError } from './usage-error.ts'

export type Body = {
  format: 'json' | 'form'
  params: WireParams
  /** The undecoded values of a form; empty for JSON. */
  encoded: ReadonlyMap<string, string>
}

/** Standard input, or its replacement in a test. */
export type Input = AsyncIterable<Uint8Array | string> & { isTTY?: boolean | undefined }

const MAX_BYTES = 1024 * 1024
const FORM = /^[^=&\s"{[]+=/

/**
 * Reads a message from standard input: a JSON object, or a form (`a=b&c=d`).
 * @throws UsageError if nothing is piped in, or the input is neither
 */
export async function readBody(input: Input): Promise<Body> {
  if (input.isTTY) throw new UsageError(`no body on standard input; ${EXAMPLE}`)
  const text = decode(await collect(input)).replace(/^\s+|[\r\n]+$/g, '')
  if (text === '') throw new UsageError(`standard input is empty; ${EXAMPLE}`)
  const isForm = FORM.test(text)
  const parsed = isForm ? parseFormParams(text) : parseJsonParams(text)
  if ('problem' in parsed) {
    const hint = isForm ? '' : ', nor is it a form like a=b&c=d'
    throw new UsageError(`${parsed.problem}${hint}`)
  }
  const encoded = isForm ? splitForm(text) : new Map<string, string>()
  return { format: isForm ? 'form' : 'json', params: parsed.params, encoded }
}

const EXAMPLE = 'pipe one in, for example: npm run -s cli -- sign < body.json'

async function collect(input: Input): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk)
    size += bytes.length
    if (size > MAX_BYTES) throw new UsageError('the body is larger than 1 MiB')
    chunks.push(bytes)
  }
  return Buffer.concat(chunks)
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new UsageError('the body is not UTF-8 text')
  }
}

function splitForm(text: string): Map<string, string> {
  const parts = text.split('&').filter((part) => part !== '')
  return new Map(
    parts.map((part) => {
      const [name = '', value = ''] = part.split(/=(.*)/s)
      return [[...new URLSearchParams(name).keys()][0] ?? name, value]
    }),
  )
}
