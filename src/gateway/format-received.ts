import { stringify } from 'lossless-json'
import { hideSecretsInText, maskCardData, maskCardText } from '../platform/crypto/masking.ts'
import { toStorable } from './storable.ts'

/** How much of an answer is kept, in bytes. */
export const MAX_RECEIVED = 65_536
/** More than the longest number of a card is written with, so that one at the end is masked before the text is cut. */
const MARGIN = 256

/**
 * Formats the members of an answer for storage: masked, and at most `MAX_RECEIVED` bytes of them. Members that do not
 * fit are left out and counted.
 * @param elsewhere bytes of the answer that are stored elsewhere, and that were left out there
 * @returns JSON: `{"members":{…}}`, with `omittedBytes` if something was left out; undefined if there is nothing to keep
 */
export function formatMembers(
  members: Readonly<Record<string, unknown>>,
  elsewhere = { bytes: 0, omittedBytes: 0 },
): string | undefined {
  const masked = toStorable(maskCardData(members))
  if (typeof masked !== 'object' || masked === null) return undefined
  const texts: string[] = []
  let size = elsewhere.bytes
  let omitted = elsewhere.omittedBytes
  for (const [name, value] of Object.entries(masked)) {
    const text = `${JSON.stringify(name)}:${stringify(value) ?? 'null'}`
    const bytes = Buffer.byteLength(text)
    if (size + bytes > MAX_RECEIVED) omitted += bytes
    else {
      texts.push(text)
      size += bytes
    }
  }
  if (texts.length === 0 && omitted === 0) return undefined
  return `{"members":{${texts.join(',')}}${describeOmitted(omitted)}}`
}

/**
 * Formats an answer that is no JSON object for storage: its text, masked, and at most `MAX_RECEIVED` bytes of it.
 * @returns JSON: `{"text":"…"}`, with `omittedBytes` if something was left out; undefined for an empty answer
 */
export function formatText(body: Buffer): string | undefined {
  if (body.length === 0) return undefined
  const text = new TextDecoder().decode(body.subarray(0, MAX_RECEIVED + MARGIN))
  const masked = hideSecretsInText(maskCardText(text.replaceAll('\0', '\ufffd')))
  const kept = cutBytes(masked, MAX_RECEIVED)
  return `{"text":${JSON.stringify(kept)}${describeOmitted(Math.max(0, body.length - MAX_RECEIVED))}}`
}

function describeOmitted(bytes: number): string {
  return bytes === 0 ? '' : `,"omittedBytes":${bytes}`
}

/** The beginning of a text, whole characters of at most so many bytes. */
function cutBytes(text: string, bytes: number): string {
  const encoded = Buffer.from(text)
  if (encoded.length <= bytes) return text
  return new TextDecoder().decode(encoded.subarray(0, bytes)).replace(/\ufffd$/, '')
}
