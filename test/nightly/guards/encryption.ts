import { type Guard, guards } from './guard.ts'

export const ENCRYPTION: readonly Guard[] = [
  {
    file: 'src/db/data-keys.ts',
    text: '  if (!key) throw WRONG_KEY\n',
    mutation: '  if (!key) return { ...stored, key: Buffer.alloc(32), isCurrent: true }\n',
    test: 'test/api/data-keys/data-keys.test.ts',
    claim:
      'another DATA_ENCRYPTION_KEY than the database was written with stops the start, with one line',
    control: 'another DATA_ENCRYPTION_KEY in processes that start together is stored once',
  },
  ...guards({ file: 'src/db/data-keys.ts', test: 'test/api/data-keys/reseal.test.ts' }, [
    {
      text: 'activeAt: now - ageMs + ACTIVE_AFTER_MS',
      mutation: 'activeAt: now - ageMs + ACTIVE_AFTER_MS / 1e9',
      claim:
        'no process encrypts with the fresh key before every other one has had a minute to read it',
      control: 'the receivers in events are delivered as before',
    },
    {
      text: "    throw new DomainError('unavailable', 'A data key is being read; retry in a moment')\n",
      mutation:
        "    if (id === '') throw new DomainError('unavailable', 'A data key is being read')\n",
      claim:
        'everything stored is encrypted again under a fresh key, and a process that does not know it yet loses nothing',
      control: 'the receivers in events are delivered as before',
    },
  ]),
  ...guards({ file: 'src/maintenance/reseal.ts', test: 'test/api/data-keys/reseal.test.ts' }, [
    {
      text: '    isLeft = done.receivers + done.endpoints + done.events > before\n',
      mutation: '    isLeft = done.receivers + done.endpoints + done.events < before\n',
      claim: 'what is written under the older key during a run is found by it',
      control: 'the receivers in events are delivered as before',
    },
    {
      text: 'where merchant_code = ${merchantCode} and ${sql(key)} = ${id} and ${sql(column)} = ${before}`',
      mutation: 'where merchant_code = ${merchantCode} and ${sql(key)} = ${id}`',
      claim: 'a receiver that is erased meanwhile does not come back',
      control: 'it is recorded in the audit log',
    },
  ]),
  ...guards({ file: 'src/platform/crypto/encryption.ts' }, [
    {
      text: '  return Buffer.concat([head, Buffer.from(`${column}\\0${row}`)])',
      mutation: '  return Buffer.concat([head, Buffer.from(`${column.slice(0, 0)}\\0${row}`)])',
      test: 'test/unit/platform/crypto/encryption.test.ts',
      claim: 'a ciphertext is read in its own column and row only',
      control: 'a fingerprint says with which key it was made; without that key nobody can compare',
    },
    {
      text: "      if (!key) return 'unknown'",
      mutation: "      if (!key) return 'different'",
      test: 'test/unit/platform/crypto/encryption.test.ts',
      claim: 'a fingerprint says with which key it was made; without that key nobody can compare',
      control: 'a ciphertext is read in its own column and row only',
    },
    {
      text: "  return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8')",
      mutation: "  return decipher.update(body).toString('utf8')",
      test: 'test/unit/platform/crypto/encryption.test.ts',
      claim: 'a ciphertext names its key, and no changed byte of it passes',
      control: 'a fingerprint says with which key it was made; without that key nobody can compare',
    },
    {
      text: "  return { column: 'data_keys.wrapped', row: `${purpose} ${id}` }",
      mutation: "  return { column: 'data_keys.wrapped', row: `${purpose.length > 0} ${id}` }",
      test: 'test/unit/platform/crypto/encryption.test.ts',
      claim: 'a data key is unwrapped with its root key, for its own purpose',
      control: 'a fingerprint says with which key it was made; without that key nobody can compare',
    },
    {
      text: '  return Buffer.concat([head, Buffer.from(`${column}\\0${row}`)])',
      mutation: '  return Buffer.concat([head, Buffer.from(`${column}\\0${row.slice(0, 0)}`)])',
      test: 'test/unit/platform/crypto/encryption.test.ts',
      claim: 'a ciphertext is read in its own column and row only',
      control: 'a fingerprint says with which key it was made; without that key nobody can compare',
    },
  ]),
  ...guards({ file: 'src/db/data-keys.ts', test: 'test/api/data-keys/reseal.test.ts' }, [
    {
      text: '    await keepStored(sql, roots[0], keys)\n',
      mutation: '    await keepStored(sql, roots[0], [])\n',
      claim:
        'a key that the database lost, in a restore or with its primary, is stored again by a process that knows it',
      control: 'is refused under a root key that the service was not started with',
    },
    {
      text: '    await record(tx)\n',
      mutation: '    void record\n',
      claim: 'stores no fresh key without its entry in the audit log',
      control: 'is refused under a root key that the service was not started with',
    },
    {
      text: 'openKey(one, roots).isCurrent)) throw',
      mutation: 'openKey(one, roots))) throw',
      claim: 'is refused under a root key that the service was not started with',
      control:
        'a key that the database lost, in a restore or with its primary, is stored again by a process that knows it',
    },
  ]),
]
