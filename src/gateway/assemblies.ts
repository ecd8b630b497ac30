import { createHmac } from 'node:crypto'
import { type Deviation, type Entry, sha256 } from './attempt.ts'
import type { SignatureRule, WireParams } from './signature.ts'

const SEPARATORS = ['', '&', '|', ',', ';', ':', '-', '.', '_', ' ', '\n']

/** The same values put together in another way: order, separators, names, the place of the secret. */
export function deviateAssembly(params: WireParams, { prefix }: SignatureRule): Deviation[] {
  const bodyOrder = Object.keys(params)
  const order = (what: string, sort: (a: Entry, b: Entry) => number): Deviation => ({
    what,
    apply: (attempt) => ({ ...attempt, order: (entries) => entries.toSorted(sort) }),
  })
  const at = ({ name }: Entry) => bodyOrder.indexOf(name)
  const orders = [
    order('with the names in the order of the body', (a, b) => at(a) - at(b)),
    order('with the names sorted without regard to case', (a, b) =>
      a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1,
    ),
  ]
  const parts = [
    { what: 'values', write: ({ text }: Entry) => text },
    { what: 'name=value pairs', write: ({ name, text }: Entry) => `${name}=${text}` },
    {
      what: 'name=value pairs without prefix',
      write: ({ name, text }: Entry) => `${name.slice(prefix.length + 1)}=${text}`,
    },
  ]
  const styles = parts.flatMap(({ what, write }) =>
    SEPARATORS.flatMap((separator) => {
      const joined =
        separator === '' ? 'without separator' : `joined by ${JSON.stringify(separator)}`
      return listPlaces(separator).map(
        ({ where, hash }): Deviation => ({
          what: `with ${what} ${joined}${where}`,
          apply: (attempt) => ({
            ...attempt,
            hash: (entries, secret) => hash(entries.map(write).join(separator), secret),
          }),
        }),
      )
    }),
  )
  return [...orders, ...styles]
}

function listPlaces(separator: string) {
  return [
    {
      where: ', the secret right behind',
      hash: (text: string, secret: string) => sha256(text + secret),
    },
    {
      where: ', the secret behind a separator of its own',
      hash: (text: string, secret: string) => sha256(text + separator + secret),
    },
    {
      where: ', the secret in front',
      hash: (text: string, secret: string) => sha256(secret + text),
    },
    {
      where: ', by HMAC-SHA256 under the secret',
      hash: (text: string, secret: string) =>
        createHmac('sha256', secret).update(text).digest('hex'),
    },
  ]
}
