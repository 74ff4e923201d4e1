const Terser = require('terser-webpack-plugin');
module.exports = { mode: 'production', target: ['node','es5'], devtool: 'source-map', entry: './src/main.ts', output: { path: __dirname + '/out-babel', filename: 'app.min.js' },
 resolve: { extensions: ['.ts', '.js'] }, module: { rules: [{ test: /\.(ts|js)$/, exclude: /node_modules/, use: { loader: 'babel-loader', options: { presets: [['@babel/preset-env', { targets: 'ie 11' }], '@babel/preset-typescript'] } } }] }, optimization: { minimizer: [new Terser()] } };
