import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
} from 'node:crypto'

/** The table and column where a ciphertext is stored. It cannot be decrypted anywhere else. */
export type Place = { column: `${string}.${string}`; row: string }

type DataKeyPurpose = 'seal' | 'fingerprint'

export type DataKey = {
  purpose: DataKeyPurpose
  id: string
  key: Buffer
  /** When new data starts to use it, until a newer key is active (`performance.now`). */
  activeAt: number
}

export type Fingerprint = { value: Buffer; keyId: string }

const MAGIC = Buffer.from('DKv2')
const KEY_ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16

export type Encryption = ReturnType<typeof createEncryption>

/**
 * Creates the encryption of stored values.
 * @param list returns the keys known at the moment
 * @param seek is called with the id of an unknown key, and may throw
 */
export function createEncryption(
  list: () => readonly DataKey[],
  seek: (id: string) => void = () => {},
) {
  const find = (purpose: DataKeyPurpose, id: string) =>
    list().find((one) => one.purpose === purpose && one.id === id)
  return {
    /** Encrypts with AES-256-GCM. The ciphertext names its key, and the place is authenticated. */
    encrypt: (text: string, place: Place) => seal(findActive(list(), 'seal'), text, place),
    /** @throws Error if the key is unknown, or the place or the bytes differ from those at encryption */
    decrypt(ciphertext: Buffer, place: Place): string {
      const id = readKeyId(ciphertext)
      const named = id === undefined ? undefined : find('seal', id)
      if (id !== undefined && !named) seek(id)
      if (!named) throw new Error('the data key of a ciphertext is not there')
      return unseal(named, ciphertext, place)
    },
    /** Returns the first bytes of everything encrypted with the active key, and of nothing else. */
    getActiveHead: () => formatHead(findActive(list(), 'seal').id),
    /** Computes an HMAC. Equal texts have equal ones, and the text cannot be recovered. */
    fingerprint(text: string): Fingerprint {
      const printing = findActive(list(), 'fingerprint')
      return { value: computeHmac(printing, text), keyId: printing.id }
    },
    /** Compares a text with a fingerprint. `unknown`: the key is not available. */
    checkFingerprint(
      text: string,
      { value, keyId }: Fingerprint,
    ): 'same' | 'different' | 'unknown' {
      const key = find('fingerprint', keyId)
      if (!key) return 'unknown'
      return computeHmac(key, text).equals(value) ? 'same' : 'different'
    },
  }
}

/** Creates a random data key that is active at once. */
export function createDataKey(purpose: DataKeyPurpose): DataKey {
  const id = randomBytes(KEY_ID_BYTES).toString('hex')
  return { purpose, id, key: randomBytes(32), activeAt: 0 }
}

/** Encrypts and decrypts data keys with a root key from the settings. */
export function createKeyWrap(root: Buffer) {
  const derived = hkdfSync('sha256', root, '', 'ipn-processor data keys', 32)
  const key = { id: computeKeyId(root), key: Buffer.from(derived) }
  return {
    wrap: (dataKey: NamedKey & Pick<DataKey, 'purpose'>) =>
      seal(key, dataKey.key.toString('base64'), placeOf(dataKey)),
    /** @returns undefined if it was wrapped with another root key */
    unwrap(wrapped: Buffer, dataKey: Pick<DataKey, 'purpose' | 'id'>): Buffer | undefined {
      if (readKeyId(wrapped) !== key.id) return undefined
      return Buffer.from(unseal(key, wrapped, placeOf(dataKey)), 'base64')
    },
  }
}

type NamedKey = Pick<DataKey, 'id' | 'key'>

function placeOf({ purpose, id }: Pick<DataKey, 'purpose' | 'id'>): Place {
  return { column: 'data_keys.wrapped', row: `${purpose} ${id}` }
}

/** Returns the newest active key, or the first one if none is active yet. */
function findActive(keys: readonly DataKey[], purpose: DataKeyPurpose): DataKey {
  const now = performance.now()
  const [first, ...others] = keys
    .filter((one) => one.purpose === purpose)
    .sort((a, b) => a.activeAt - b.activeAt)
  if (!first) throw new Error(`there is no data key to ${purpose} with`)
  return others.findLast(({ activeAt }) => activeAt <= now) ?? first
}

/** Returns the id of a root key for stored data and the log. It reveals nothing about the key. */
export function computeKeyId(key: Buffer): string {
  const digest = createHash('sha256').update('ipn-processor key id').update(key).digest()
  return digest.subarray(0, KEY_ID_BYTES).toString('hex')
}

/** @returns undefined for bytes that are not from `seal` */
function readKeyId(ciphertext: Buffer): string | undefined {
  if (!ciphertext.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  return ciphertext.subarray(MAGIC.length, MAGIC.length + KEY_ID_BYTES).toString('hex')
}

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
  const sealed = ciphertext.subarray(headBytes)
  const nonce = sealed.subarray(0, NONCE_BYTES)
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(formatPlace(head, place))
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
