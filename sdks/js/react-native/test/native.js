// The native side of a device, in memory: storage, links, app state and network. Everything above it is the real
// JavaScript of React Native and of AsyncStorage.
const { kit } = global;

/** Creates a device. Its storage outlives the processes of the app. */
export function createDevice() {
  const values = new Map();
  const device = {
    values,
    /** `ok`, `unreadable`, `unwritable`, or `stuck`: writes do not end. */
    storage: 'ok',
    /** The link that opened the app, or a promise of it. */
    initialUrl: null,
    /** Returns the address that the network leads to. */
    route: (url) => url,
    requests: new Map(),
    inFlight: () => device.requests.size,
  };
  let emitter;
  let nextId = 1;

  const answer = (callback, ...given) => {
    const { requests } = device;
    const later = () => {
      if (device.storage === 'stuck' && given.length === 0) setImmediate(later);
      // A process that ended learns nothing.
      else if (requests === device.requests) callback(...given);
    };
    setImmediate(later);
  };
  const refused = (mode) => (device.storage === mode ? [[{ message: `The storage is ${mode}.` }]] : []);
  const asyncStorage = {
    multiGet: (keys, callback) => {
      const found = keys.map((key) => [key, values.get(key) ?? null]);
      const [errors = null] = refused('unreadable');
      answer(callback, errors, errors ? null : found);
    },
    multiSet: (pairs, callback) => {
      const errors = refused('unwritable');
      const write = () => {
        if (errors.length === 0) for (const [key, value] of pairs) values.set(key, value);
        callback(...errors);
      };
      answer(write);
    },
    multiRemove: (keys, callback) => {
      const errors = refused('unwritable');
      const write = () => {
        if (errors.length === 0) for (const key of keys) values.delete(key);
        callback(...errors);
      };
      answer(write);
    },
  };

  const send = async (id, method, url, headers, body, responseType) => {
    const { requests } = device;
    const controller = new AbortController();
    requests.set(id, controller);
    const emit = (name, ...given) => {
      if (requests === device.requests && requests.has(id)) emitter.emit(name, [id, ...given]);
    };
    try {
      const { signal } = controller;
      const response = await kit.fetch(device.route(url), {
        method,
        headers,
        body,
        signal,
        redirect: 'follow',
      });
      // The systems report the address in its normal form.
      const reported = response.redirected ? response.url : new URL(url).href;
      emit('didReceiveNetworkResponse', response.status, Object.fromEntries(response.headers), reported);
      const content = Buffer.from(await response.arrayBuffer());
      emit('didReceiveNetworkData', content.toString(responseType === 'base64' ? 'base64' : 'utf8'));
      emit('didCompleteNetworkResponse', null, false);
    } catch (error) {
      emit('didCompleteNetworkResponse', String(error), false);
    }
    requests.delete(id);
  };
  const networking = {
    // iOS passes one query and chooses the id; Android passes everything one by one, with the id.
    sendRequest: (...given) => {
      if (typeof given[0] === 'object') {
        const [{ method, url, headers, data, responseType }, callback] = given;
        const id = nextId++;
        callback(id);
        void send(id, method, url, headers, data.string, responseType);
      } else {
        const [method, url, id, headers, data, responseType] = given;
        void send(id, method, url, Object.fromEntries(headers), data.string, responseType);
      }
    },
    abortRequest: (id) => {
      device.requests.get(id)?.abort();
      device.requests.delete(id);
    },
    addListener: () => {},
    removeListeners: () => {},
  };

  const links = {
    getInitialURL: async () => await device.initialUrl,
    addListener: () => {},
    removeListeners: () => {},
  };
  const appState = {
    getConstants: () => ({ initialAppState: 'active' }),
    getCurrentAppState: (callback) => callback({ app_state: 'active' }),
    addListener: () => {},
    removeListeners: () => {},
  };

  /** Starts a process of the app: loads React Native and a module of the app anew. Returns that module. */
  device.launch = (load = () => require('../dist/index.js')) => {
    device.kill();
    jest.resetModules();
    const modules = require('react-native/Libraries/BatchedBridge/NativeModules');
    Object.assign(modules.default ?? modules, {
      RNCAsyncStorage: asyncStorage,
      Networking: networking,
      LinkingManager: links,
      IntentAndroid: links,
      AppState: appState,
    });
    emitter = require('react-native/Libraries/EventEmitter/RCTDeviceEventEmitter').default;
    for (const name of ['fetch', 'Headers', 'Request', 'Response']) delete global[name];
    global.AbortController = require('abort-controller/dist/abort-controller').AbortController;
    global.XMLHttpRequest = require('react-native/Libraries/Network/XMLHttpRequest').default;
    require('react-native/Libraries/Network/fetch');
    return load();
  };
  /** Ends the process: what it waits for never comes. */
  device.kill = () => {
    for (const controller of device.requests.values()) controller.abort();
    device.requests = new Map();
  };
  device.openLink = (url) => emitter.emit('url', { url });
  device.setAppState = (state) => emitter.emit('appStateDidChange', { app_state: state });
  return device;
}
