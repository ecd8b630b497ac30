import { createHmac } from 'node:crypto'
import { type SignedEntry, type SigningMistake, sha256 } from './hash-variant.ts'
import type { SignatureRule, WireParams } from './signature.ts'

const SEPARATORS = ['', '&', '|', ',', ';', ':', '-', '.', '_', ' ', '\n']

/** Lists mistakes in putting the same values together: order, separators, names, position of the secret. */
export function listAssemblyMistakes(params: WireParams, rule: SignatureRule): SigningMistake[] {
  return [...listOrderMistakes(params), ...listJoinMistakes(rule)]
}

function listOrderMistakes(params: WireParams): SigningMistake[] {
  const bodyOrder = Object.keys(params)
  const at = ({ name }: SignedEntry) => bodyOrder.indexOf(name)
  const order = (
    what: string,
    sort: (a: SignedEntry, b: SignedEntry) => number,
  ): SigningMistake => ({
    what,
    apply: (variant) => ({ ...variant, order: (entries) => entries.toSorted(sort) }),
  })
  return [
    order('with the names in the order of the body', (a, b) => at(a) - at(b)),
    order('with the names sorted without regard to case', (a, b) =>
      a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1,
    ),
  ]
}

function listJoinMistakes({ prefix }: SignatureRule): SigningMistake[] {
  const parts = [
    { what: 'values', write: ({ text }: SignedEntry) => text },
    { what: 'name=value pairs', write: ({ name, text }: SignedEntry) => `${name}=${text}` },
    {
      what: 'name=value pairs without prefix',
      write: ({ name, text }: SignedEntry) => `${name.slice(prefix.length + 1)}=${text}`,
    },
  ]
  return parts.flatMap(({ what, write }) =>
    SEPARATORS.flatMap((separator) => {
      const joined =
        separator === '' ? 'without separator' : `joined by ${JSON.stringify(separator)}`
      return listSecretPositions(separator).map(
        ({ where, hash }): SigningMistake => ({
          what: `with ${what} ${joined}, ${where}`,
          apply: (variant) => ({
            ...variant,
            hash: (entries, secret) => hash(entries.map(write).join(separator), secret),
          }),
        }),
      )
    }),
  )
}

function listSecretPositions(separator: string) {
  return [
    {
      where: 'followed by the secret',
      hash: (text: string, secret: string) => sha256(text + secret),
    },
    {
      where: 'followed by one more separator and the secret',
      hash: (text: string, secret: string) => sha256(text + separator + secret),
    },
    {
      where: 'preceded by the secret',
      hash: (text: string, secret: string) => sha256(secret + text),
    },
    {
      where: 'as HMAC-SHA256 with the secret as its key',
      hash: (text: string, secret: string) =>
        createHmac('sha256', secret).update(text).digest('hex'),
    },
  ]
}
