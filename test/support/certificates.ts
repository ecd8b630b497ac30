import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { isIP } from 'node:net'

/** A certificate with its key, both PEM. */
export type Identity = { cert: string; key: string }

const HOUR_MS = 3_600_000

/**
 * A certificate authority for a test, and certificates it issues (X.509 v3, RFC 5280), valid for an hour around now
 * unless they end at another time from now. Encoded as DER by hand, because neither Node nor a small library creates
 * certificates.
 */
export function makeAuthority(): { cert: string; issue(name: string, endsMs?: number): Identity } {
  const name = writeName('Test authority')
  const own = makeKey()
  const basics = extension('551d13', sequence(tag(0x01, bytes('ff'))), true)
  const cert = certify({ subject: name, subjectKey: own, extensions: [basics] })

  function certify(wanted: {
    subject: Buffer
    subjectKey: KeyPair
    extensions: Buffer[]
    endsMs?: number
  }): string {
    const { subject, subjectKey, extensions, endsMs = HOUR_MS } = wanted
    const body = sequence(
      tag(0xa0, tag(0x02, bytes('02'))),
      tag(0x02, Buffer.concat([bytes('01'), randomBytes(8)])),
      ECDSA_SHA256,
      name,
      sequence(writeTime(Math.min(0, endsMs) - HOUR_MS), writeTime(endsMs)),
      subject,
      subjectKey.publicKey.export({ type: 'spki', format: 'der' }),
      tag(0xa3, sequence(...extensions)),
    )
    const signature = sign('sha256', body, own.privateKey)
    const whole = sequence(body, ECDSA_SHA256, tag(0x03, Buffer.concat([bytes('00'), signature])))
    const lines = whole.toString('base64').match(/.{1,64}/g) ?? []
    return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
  }

  return {
    cert,
    /** For a host name or an IPv4 address. */
    issue(host, endsMs = HOUR_MS) {
      const subjectKey = makeKey()
      const alternative =
        isIP(host) === 4
          ? tag(0x87, Buffer.from(host.split('.').map(Number)))
          : tag(0x82, Buffer.from(host))
      const extensions = [extension('551d11', sequence(alternative))]
      const key = subjectKey.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
      return { cert: certify({ subject: writeName(host), subjectKey, extensions, endsMs }), key }
    },
  }
}

type KeyPair = { publicKey: KeyObject; privateKey: KeyObject }

/** ecdsa-with-SHA256, 1.2.840.10045.4.3.2. */
const ECDSA_SHA256 = sequence(tag(0x06, bytes('2a8648ce3d040302')))

function makeKey(): KeyPair {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}

/** One common name (2.5.4.3). */
function writeName(text: string): Buffer {
  const common = sequence(tag(0x06, bytes('550403')), tag(0x0c, Buffer.from(text)))
  return sequence(tag(0x31, common))
}

function writeTime(fromNowMs: number): Buffer {
  const iso = new Date(Date.now() + fromNowMs).toISOString()
  return tag(0x17, Buffer.from(`${iso.replace(/\D/g, '').slice(2, 14)}Z`))
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  const flag = critical ? [tag(0x01, bytes('ff'))] : []
  return sequence(tag(0x06, bytes(id)), ...flag, tag(0x04, value))
}

function sequence(...parts: Buffer[]): Buffer {
  return tag(0x30, Buffer.concat(parts))
}

function tag(number: number, content: Buffer): Buffer {
  const { length } = content
  if (length < 0x80) return Buffer.concat([Buffer.from([number, length]), content])
  return Buffer.concat([Buffer.from([number, 0x82, length >> 8, length & 0xff]), content])
}

function bytes(hex: string): Buffer {
  return Buffer.from(hex, 'hex')
}
