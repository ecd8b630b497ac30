import type { Guard } from './guard.ts'

export const SESSIONS: readonly Guard[] = [
  {
    file: 'src/platform/postgres/hosts.ts',
    text: '  return WRITABLE.includes(requested)',
    mutation: "  return WRITABLE.length > 0 || requested === ''",
    test: 'test/unit/platform/postgres/hosts.test.ts',
    claim:
      'a database URL that ends with "?target_session_attrs=prefer-standby" requests a server for writes: false',
    control:
      'a database URL that ends with "?target_session_attrs=read-write" requests a server for writes: true',
  },
  {
    file: 'src/platform/postgres/session-end.ts',
    text: '    return isSyncWait\n',
    mutation: '    return isSyncWait && isNotice !== true\n',
    test: 'test/api/platform/postgres/session-filter.test.ts',
    claim:
      'however a session is cut into chunks, the filter ends it with a cancelled wait for the standby, and passes nothing on from there',
    control:
      'however a session is cut into chunks, the filter passes the error that refuses a session on',
  },
  {
    file: 'src/platform/postgres/session.ts',
    text: "    if (failure !== undefined) emit('error', failure)\n    emit('close', failure !== undefined)\n  }\n  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {\n    const [first] = given\n    if (event === 'error') failure ??= first\n    else if",
    mutation:
      "    if (failure !== undefined && !isTold) emit('error', failure)\n    emit('close', failure !== undefined)\n  }\n  let isTold = false\n  socket.emit = (event: string | symbol, ...given: unknown[]): boolean => {\n    const [first] = given\n    if (event === 'error') {\n      failure ??= first\n      isTold = true\n      return emit(event, ...given)\n    }\n    if",
    test: 'test/process/postgres/lost-connection.test.ts',
    claim:
      'a statement that is reported as done was done, even one sent on a connection that breaks at that moment, over TLS',
    control:
      'a server that vanished without closing anything fails what waits for it, and the pool recovers',
  },
  {
    file: 'src/platform/postgres/tls.ts',
    text: '    if (response?.length !== 1)\n',
    mutation: '    if (response === undefined || response.length === 0)\n',
    test: 'test/process/postgres/tls.test.ts',
    claim: 'more than one byte in plain text before TLS is refused',
    control: 'sslmode=require uses TLS with a server that has it, and sends nothing in plain text',
  },
  {
    file: 'src/platform/postgres/tls.ts',
    text: "  if (!isAccepted) throw new Error('the database server has no TLS, but sslmode requires it')\n",
    mutation: '  if (!isAccepted) return socket\n',
    test: 'test/process/postgres/tls.test.ts',
    claim: 'sslmode=verify-ca refuses a server that has no TLS, and sends it nothing',
    control:
      'sslmode=prefer continues in plain text with a server that has no TLS, and disable does not request it',
  },
]
