import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
} from 'node:crypto'

/** Where a ciphertext is stored. It can be decrypted only as the value of this column in this row. */
export type Place = {
  /** The names of table and column. */
  column: `${string}.${string}`
  /** Identifies the row. */
  row: string
  /**
   * Whether a text is one of this column, where two columns of a row are encrypted. It is asked about ciphertexts of early
   * releases alone, which authenticated the row only: one of them could be put in the place of the other.
   */
  isOwn?: (text: string) => boolean
}

export type DataKeyPurpose = 'seal' | 'fingerprint'

/** A key that data is encrypted or fingerprinted with. */
export type DataKey = {
  purpose: DataKeyPurpose
  id: string
  key: Buffer
  /** New data uses it; exactly one key of each purpose is active. */
  active: boolean
}

/** An HMAC-SHA-256, and the key it was made with; null for one made by a release without key ids. */
export type Fingerprint = { value: Buffer; keyId: string | null }

/** `unknown`: the key is not there, or it is unclear which key it was. */
export type FingerprintCheck = 'same' | 'different' | 'unknown'

/** Encryption of stored values. */
export type Encryption = {
  /** Encrypts with AES-256-GCM. The ciphertext names its key; the place is authenticated. */
  encrypt(text: string, place: Place): Buffer
  /**
   * Decrypts what `encrypt` returned, or an earlier release, which authenticated the row only; there `isOwn` decides.
   * @throws Error when its key is not there, or the place or the bytes differ from those of the encryption
   */
  decrypt(ciphertext: Buffer, place: Place): string
  /** The first bytes of everything that is encrypted with the active key, and of nothing else. */
  activeHead: Buffer
  /** Computes an HMAC: equal texts compare equal, and no text can be recovered. */
  fingerprint(text: string): { value: Buffer; keyId: string }
  /** Compares a text with the one that was fingerprinted. */
  checkFingerprint(text: string, fingerprint: Fingerprint): FingerprintCheck
}

const MAGIC = Buffer.from('DKv2')
const KEY_ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** @throws Error when there is not exactly one active key of each purpose */
export function createEncryption(keys: readonly DataKey[]): Encryption {
  const sealKeys = new Map(keys.flatMap((one) => (one.purpose === 'seal' ? [[one.id, one]] : [])))
  const printKeys = new Map(
    keys.flatMap((one) => (one.purpose === 'fingerprint' ? [[one.id, one]] : [])),
  )
  const sealing = findActive([...sealKeys.values()])
  const printing = findActive([...printKeys.values()])
  return {
    encrypt: (text, place) => seal(sealing, text, place),
    decrypt(ciphertext, place) {
      const named = sealKeys.get(readKeyId(ciphertext) ?? '')
      if (named) return unseal(named, ciphertext, place)
      return unsealUnnamed([...sealKeys.values()], ciphertext, place)
    },
    activeHead: formatHead(sealing.id),
    fingerprint: (text) => ({ value: computeHmac(printing, text), keyId: printing.id }),
    checkFingerprint(text, { value, keyId }) {
      const candidates = [...printKeys.values()].filter(({ id }) => keyId === null || id === keyId)
      if (candidates.some((key) => computeHmac(key, text).equals(value))) return 'same'
      return keyId === null || candidates.length === 0 ? 'unknown' : 'different'
    },
  }
}

/** Derives the pair of keys that releases without stored keys used, from the root key in the settings. */
export function deriveDataKeys(root: Buffer, active: boolean): DataKey[] {
  const id = computeKeyId(root)
  // Existing data depends on these purpose strings.
  return (['seal', 'fingerprint'] as const).map((purpose) => ({
    purpose,
    id,
    key: deriveKey(root, purpose),
    active,
  }))
}

/** Encrypts and decrypts data keys under a root key from the settings. */
export function createKeyWrap(root: Buffer) {
  const key = { id: computeKeyId(root), key: deriveKey(root, 'data keys') }
  return {
    wrap: (dataKey: DataKey) => seal(key, dataKey.key.toString('base64'), placeOf(dataKey)),
    /** @returns undefined when it was wrapped with another root key */
    unwrap(wrapped: Buffer, dataKey: Omit<DataKey, 'key'>): Buffer | undefined {
      if (readKeyId(wrapped) !== key.id) return undefined
      return Buffer.from(unseal(key, wrapped, placeOf(dataKey)), 'base64')
    },
  }
}

type NamedKey = Pick<DataKey, 'id' | 'key'>

function placeOf({ purpose, id }: Omit<DataKey, 'key'>): Place {
  return { column: 'data_keys.wrapped', row: `${purpose} ${id}` }
}

function findActive(keys: readonly DataKey[]): DataKey {
  const [active, ...others] = keys.filter((one) => one.active)
  if (!active || others.length > 0) throw new Error('not exactly one data key is active')
  return active
}

/** Returns the id that names a root key in stored data and in the log. Nothing of the key follows from it. */
export function computeKeyId(key: Buffer): string {
  const digest = createHash('sha256').update('ipn-processor key id').update(key).digest()
  return digest.subarray(0, KEY_ID_BYTES).toString('hex')
}

/** @returns undefined for a ciphertext of a release that named no key */
function readKeyId(ciphertext: Buffer): string | undefined {
  if (!ciphertext.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  return ciphertext.subarray(MAGIC.length, MAGIC.length + KEY_ID_BYTES).toString('hex')
}

/** What a ciphertext begins with: the mark, and the id of its key. */
function formatHead(id: string): Buffer {
  return Buffer.concat([MAGIC, Buffer.from(id, 'hex')])
}

function seal({ id, key }: NamedKey, text: string, place: Place): Buffer {
  const head = formatHead(id)
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(formatPlace(head, place))
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return Buffer.concat([head, nonce, cipher.getAuthTag(), body])
}

function unseal({ key }: NamedKey, ciphertext: Buffer, place: Place): string {
  const headBytes = MAGIC.length + KEY_ID_BYTES
  const head = ciphertext.subarray(0, headBytes)
  return open(key, ciphertext.subarray(headBytes), formatPlace(head, place))
}

function unsealUnnamed(
  keys: readonly NamedKey[],
  ciphertext: Buffer,
  { column, row, isOwn = () => true }: Place,
): string {
  for (const { key } of keys) {
    const text = tryOpen(key, ciphertext, row)
    if (text === undefined) continue
    if (isOwn(text)) return text
    throw new Error(`a ciphertext of another column is stored in ${column}`)
  }
  throw new Error('the data key of a ciphertext is not there')
}

function tryOpen(key: Buffer, ciphertext: Buffer, row: string): string | undefined {
  try {
    return open(key, ciphertext, Buffer.from(row))
  } catch {
    return undefined
  }
}

function open(key: Buffer, sealed: Buffer, context: Buffer): string {
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(context)
    .setAuthTag(tag)
  const body = sealed.subarray(NONCE_BYTES + TAG_BYTES)
  return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8')
}

function formatPlace(head: Buffer, { column, row }: Place): Buffer {
  return Buffer.concat([head, Buffer.from(`${column}\0${row}`)])
}

function computeHmac({ key }: NamedKey, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}

function deriveKey(root: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', root, '', `ipn-processor ${purpose}`, 32))
}
